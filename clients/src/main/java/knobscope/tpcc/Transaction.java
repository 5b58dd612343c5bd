package knobscope.tpcc;

import java.sql.SQLException;
import knobscope.sql.Sql;

/** A transaction with its input data, which stay the same when it has to be tried again. */
interface Transaction {
  /**
   * Carries out all statements.
   *
   * @return false when the transaction is to be rolled back: the data was entered wrongly (clause 2.4.1.4)
   */
  boolean run(Sql sql) throws SQLException;
}
