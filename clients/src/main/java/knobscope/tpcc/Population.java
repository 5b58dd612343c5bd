package knobscope.tpcc;

import java.math.BigDecimal;
import java.sql.SQLException;
import java.sql.Timestamp;
import knobscope.sql.RowWriter;
import knobscope.sql.Sql;

/** The rows that a database has at first (clause 4.3.3). The same scale gives the same rows, but for their dates. */
final class Population {
  private static final BigDecimal YTD = new BigDecimal("30000.00"); // of a district; a warehouse has ten times that
  private static final BigDecimal CREDIT_LIMIT = new BigDecimal("50000.00");
  private static final BigDecimal TEN = new BigDecimal("10.00");
  private static final BigDecimal ZERO = new BigDecimal("0.00");

  private final Sql sql;
  private final Scale scale;
  private final Timestamp now = new Timestamp(System.currentTimeMillis() / 1000 * 1000);

  Population(Sql sql, Scale scale) {
    this.sql = sql;
    this.scale = scale;
  }

  void items() throws SQLException {
    Chance chance = Chance.forLoad(scale, 0);
    RowWriter items = new RowWriter(sql, "item", 5);
    for (int item = 1; item <= scale.items(); item++) {
      items.add(item, chance.between(1, 10_000), chance.alphanumeric(14, 24), chance.decimal(100, 10_000, 2),
          chance.data());
    }
    items.finish();
  }

  /** A warehouse with everything that belongs to it. */
  void warehouse(int warehouse) throws SQLException {
    Chance chance = Chance.forLoad(scale, warehouse);
    stock(chance, warehouse);
    RowWriter districts = new RowWriter(sql, "district", 11);
    for (int district = 1; district <= Scale.DISTRICTS; district++) {
      districts.add(district, warehouse, chance.alphanumeric(6, 10), street(chance), street(chance), street(chance),
          chance.letters(2), chance.zip(), chance.decimal(0, 2000, 4), YTD, scale.customers() + 1);
      customers(chance, warehouse, district);
      orders(chance, warehouse, district);
    }
    districts.finish();
    RowWriter warehouses = new RowWriter(sql, "warehouse", 9); // last: once it is there, all of it is
    warehouses.add(warehouse, chance.alphanumeric(6, 10), street(chance), street(chance), street(chance),
        chance.letters(2), chance.zip(), chance.decimal(0, 2000, 4), YTD.multiply(BigDecimal.TEN));
    warehouses.finish();
  }

  private static String street(Chance chance) {
    return chance.alphanumeric(10, 20);
  }

  private void stock(Chance chance, int warehouse) throws SQLException {
    RowWriter stock = new RowWriter(sql, "stock", 17);
    Object[] row = new Object[17];
    for (int item = 1; item <= scale.items(); item++) {
      row[0] = item;
      row[1] = warehouse;
      row[2] = chance.between(10, 100);
      for (int district = 1; district <= Scale.DISTRICTS; district++) {
        row[2 + district] = chance.letters(24);
      }
      row[13] = row[14] = row[15] = 0;
      row[16] = chance.data();
      stock.add(row);
    }
    stock.finish();
  }

  private void customers(Chance chance, int warehouse, int district) throws SQLException {
    RowWriter customers = new RowWriter(sql, "customer", 21);
    RowWriter history = new RowWriter(sql, "history", 8);
    for (int customer = 1; customer <= scale.customers(); customer++) {
      String last = customer <= scale.lastNames() ? Chance.lastName(customer - 1) : chance.lastName();
      customers.add(customer, district, warehouse, chance.alphanumeric(8, 16), "OE", last, street(chance),
          street(chance), street(chance), chance.letters(2), chance.zip(), chance.digits(16), now,
          chance.percent(10) ? "BC" : "GC", CREDIT_LIMIT, chance.decimal(0, 5000, 4), TEN.negate(), TEN, 1, 0,
          chance.alphanumeric(300, 500));
      history.add(customer, district, warehouse, district, warehouse, now, TEN, chance.alphanumeric(12, 24));
    }
    customers.finish();
    history.finish();
  }

  private void orders(Chance chance, int warehouse, int district) throws SQLException {
    RowWriter orders = new RowWriter(sql, "orders", 8);
    RowWriter waiting = new RowWriter(sql, "new_order", 3);
    RowWriter lines = new RowWriter(sql, "order_line", 10);
    int[] customers = chance.permutation(scale.customers());
    for (int order = 1; order <= scale.customers(); order++) {
      boolean delivered = order <= scale.customers() - scale.newOrders();
      int count = chance.between(5, 15);
      orders.add(order, district, warehouse, customers[order - 1], now, delivered ? chance.between(1, 10) : null,
          count, 1);
      for (int number = 1; number <= count; number++) {
        lines.add(order, district, warehouse, number, chance.between(1, scale.items()), warehouse,
            delivered ? now : null, 5, delivered ? ZERO : chance.decimal(1, 999_999, 2), chance.letters(24));
      }
      if (!delivered) {
        waiting.add(order, district, warehouse);
      }
    }
    orders.finish();
    waiting.finish();
    lines.finish();
  }
}
