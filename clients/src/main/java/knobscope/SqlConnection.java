package knobscope;

import java.sql.Connection;

/** A binding that lends its connection to a workload with transactions of its own. */
public interface SqlConnection {
  /** The connection of this thread, with all init statements done. */
  Connection connection();
}
