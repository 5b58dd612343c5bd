package knobscope.tpcc;

import java.sql.SQLException;
import knobscope.sql.Sql;

/** Clause 2.8: how many items of a district's last 20 orders are short in stock. */
record StockLevel(int warehouse, int district, int threshold) implements Transaction {
  private static final int ORDERS = 20;

  static StockLevel draw(Chance chance, int warehouse, int district) {
    return new StockLevel(warehouse, district, chance.between(10, 20));
  }

  @Override
  public boolean run(Sql sql) throws SQLException {
    int next = sql.one("select d_next_o_id from district where d_w_id = ? and d_id = ?", row -> row.getInt(1),
        warehouse, district);
    sql.one("select count(distinct s_i_id) from order_line join stock on s_i_id = ol_i_id where ol_w_id = ? "
        + "and ol_d_id = ? and ol_o_id < ? and ol_o_id >= ? and s_w_id = ? and s_quantity < ?", row -> row.getInt(1),
        warehouse, district, next, next - ORDERS, warehouse, threshold);
    return true;
  }
}
