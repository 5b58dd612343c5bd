package knobscope.tpcc;

import java.math.BigDecimal;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import knobscope.sql.Sql;

/** Clause 2.4: a customer orders 5 to 15 items; 1 % of the items come from another warehouse. */
record NewOrder(int warehouse, int district, int customer, List<Line> lines) implements Transaction {
  /** An item that is ordered. */
  record Line(int item, int supplier, int quantity) {}

  /** One order in a hundred names an item that does not exist, as its last. */
  static NewOrder draw(Chance chance, Scale scale, Mix mix, int warehouse) {
    boolean wrong = chance.percent(1);
    int count = chance.between(5, 15);
    List<Line> lines = new ArrayList<>();
    for (int number = 1; number <= count; number++) {
      int item = wrong && number == count ? scale.items() + 1 : chance.itemId();
      int supplier = chance.hits(mix.remoteItems()) ? chance.otherWarehouse(warehouse) : warehouse;
      lines.add(new Line(item, supplier, chance.between(1, 10)));
    }
    // everybody locks stock in the same order: no deadlocks; and the item that does not exist stays last
    lines.sort(Comparator.comparingInt(Line::item).thenComparingInt(Line::supplier));
    return new NewOrder(warehouse, chance.between(1, Scale.DISTRICTS), chance.customerId(), lines);
  }

  @Override
  public boolean run(Sql sql) throws SQLException {
    sql.update("update district set d_next_o_id = d_next_o_id + 1 where d_w_id = ? and d_id = ?", warehouse, district);
    int order = sql.one("select d_next_o_id - 1, d_tax from district where d_w_id = ? and d_id = ?",
        row -> row.getInt(1), warehouse, district);
    sql.one("select w_tax, c_discount, c_last, c_credit from warehouse, customer where w_id = ? and c_w_id = ? "
        + "and c_d_id = ? and c_id = ?", row -> row.getString(3), warehouse, warehouse, district, customer);
    boolean local = lines.stream().allMatch(line -> line.supplier() == warehouse);
    sql.update("insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) "
        + "values (?, ?, ?, ?, ?, ?, ?)", order, district, warehouse, customer,
        new Timestamp(System.currentTimeMillis()), lines.size(), local ? 1 : 0);
    sql.update("insert into new_order (no_o_id, no_d_id, no_w_id) values (?, ?, ?)", order, district, warehouse);
    for (int number = 1; number <= lines.size(); number++) {
      if (!take(sql, order, number, lines.get(number - 1))) {
        return false;
      }
    }
    return true;
  }

  /** Takes an item from stock and writes the order line; false when there is no such item. */
  private boolean take(Sql sql, int order, int number, Line line) throws SQLException {
    List<BigDecimal> price = sql.all("select i_price, i_name, i_data from item where i_id = ?",
        row -> row.getBigDecimal(1), line.item());
    if (price.isEmpty()) {
      return false;
    }
    sql.update("update stock set s_quantity = case when s_quantity >= ? then s_quantity - ? else s_quantity + ? end, "
        + "s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? "
        + "where s_w_id = ? and s_i_id = ?", line.quantity() + 10, line.quantity(), 91 - line.quantity(),
        line.quantity(), line.supplier() == warehouse ? 0 : 1, line.supplier(), line.item());
    String info = sql.one("select " + Schema.dist(district) + ", s_quantity, s_data from stock "
        + "where s_w_id = ? and s_i_id = ?", row -> row.getString(1), line.supplier(), line.item());
    sql.update("insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, "
        + "ol_amount, ol_dist_info) values (?, ?, ?, ?, ?, ?, ?, ?, ?)", order, district, warehouse, number,
        line.item(), line.supplier(), line.quantity(), price.get(0).multiply(BigDecimal.valueOf(line.quantity())),
        info);
    return true;
  }
}
