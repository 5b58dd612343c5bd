package knobscope.tpcc;

import java.math.BigDecimal;
import java.sql.SQLException;
import java.sql.SQLTransactionRollbackException;
import java.sql.Timestamp;
import knobscope.sql.Sql;

/**
 * Clause 2.7: the oldest order of each of the ten districts is delivered, all ten in one transaction. A district where
 * nothing waits is skipped (clause 2.7.4.2). Carried out when it is asked for, not from a queue.
 */
record Delivery(int warehouse, int carrier) implements Transaction {
  /**
   * Changes nothing. A transaction of SQLite that began by reading can write only if nobody else has written since;
   * without this statement 40 deliveries beside three other threads took 1552 attempts.
   */
  private static final String BEGIN_AS_WRITER = "update warehouse set w_ytd = w_ytd where w_id = 0";

  static Delivery draw(Chance chance, int warehouse) {
    return new Delivery(warehouse, chance.between(1, 10));
  }

  @Override
  public boolean run(Sql sql) throws SQLException {
    Timestamp now = new Timestamp(System.currentTimeMillis());
    sql.update(BEGIN_AS_WRITER);
    for (int district = 1; district <= Scale.DISTRICTS; district++) {
      Integer order = sql.one("select min(no_o_id) from new_order where no_w_id = ? and no_d_id = ?",
          row -> row.getString(1) == null ? null : row.getInt(1), warehouse, district);
      if (order != null) {
        deliver(sql, district, order, now);
      }
    }
    return true;
  }

  private void deliver(Sql sql, int district, int order, Timestamp now) throws SQLException {
    if (sql.update("delete from new_order where no_w_id = ? and no_d_id = ? and no_o_id = ?", warehouse, district,
        order) == 0) {
      throw new SQLTransactionRollbackException("another terminal delivers this order", "40001");
    }
    int customer = sql.one("select o_c_id from orders where o_w_id = ? and o_d_id = ? and o_id = ?",
        row -> row.getInt(1), warehouse, district, order);
    sql.update("update orders set o_carrier_id = ? where o_w_id = ? and o_d_id = ? and o_id = ?", carrier, warehouse,
        district, order);
    sql.update("update order_line set ol_delivery_d = ? where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?", now,
        warehouse, district, order);
    BigDecimal total = sql.one("select sum(ol_amount) from order_line where ol_w_id = ? and ol_d_id = ? "
        + "and ol_o_id = ?", row -> row.getBigDecimal(1), warehouse, district, order);
    sql.update("update customer set c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 "
        + "where c_w_id = ? and c_d_id = ? and c_id = ?", total, warehouse, district, customer);
  }
}
