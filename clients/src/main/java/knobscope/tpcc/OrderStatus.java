package knobscope.tpcc;

import java.sql.SQLException;
import java.util.List;
import knobscope.sql.Sql;

/** Clause 2.6: a customer asks for the state of the last order. */
record OrderStatus(Who customer) implements Transaction {
  static OrderStatus draw(Chance chance, int warehouse) {
    return new OrderStatus(Who.draw(chance, warehouse, chance.between(1, Scale.DISTRICTS)));
  }

  @Override
  public boolean run(Sql sql) throws SQLException {
    int id = customer.find(sql);
    sql.one("select c_balance, c_first, c_middle, c_last from customer where c_w_id = ? and c_d_id = ? and c_id = ?",
        row -> row.getString(4), customer.warehouse(), customer.district(), id);
    int order = sql.one("select o_id, o_entry_d, o_carrier_id from orders where o_w_id = ? and o_d_id = ? "
        + "and o_c_id = ? order by o_id desc limit 1", row -> row.getInt(1), customer.warehouse(),
        customer.district(), id);
    List<Integer> items = sql.all("select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d "
        + "from order_line where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?", row -> row.getInt(1),
        customer.warehouse(), customer.district(), order);
    if (items.isEmpty()) {
      throw new SQLException("order " + order + " has no lines");
    }
    return true;
  }
}
