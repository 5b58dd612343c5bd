package knobscope.tpcc;

import java.math.BigDecimal;
import java.sql.SQLException;
import java.sql.Timestamp;
import knobscope.sql.Sql;

/** Clause 2.5: a customer pays; 15 % of them belong to another warehouse. */
record Payment(int warehouse, int district, Who customer, BigDecimal amount) implements Transaction {
  private static final int DATA_LENGTH = 500;

  static Payment draw(Chance chance, Mix mix, int warehouse) {
    int district = chance.between(1, Scale.DISTRICTS);
    int home = chance.hits(mix.remotePayments()) ? chance.otherWarehouse(warehouse) : warehouse;
    int homeDistrict = home == warehouse ? district : chance.between(1, Scale.DISTRICTS);
    return new Payment(warehouse, district, Who.draw(chance, home, homeDistrict), chance.decimal(100, 500_000, 2));
  }

  @Override
  public boolean run(Sql sql) throws SQLException {
    sql.update("update warehouse set w_ytd = w_ytd + ? where w_id = ?", amount, warehouse);
    String warehouseName = sql.one("select w_name, w_street_1, w_street_2, w_city, w_state, w_zip from warehouse "
        + "where w_id = ?", row -> row.getString(1), warehouse);
    sql.update("update district set d_ytd = d_ytd + ? where d_w_id = ? and d_id = ?", amount, warehouse, district);
    String districtName = sql.one("select d_name, d_street_1, d_street_2, d_city, d_state, d_zip from district "
        + "where d_w_id = ? and d_id = ?", row -> row.getString(1), warehouse, district);
    int id = customer.find(sql);
    charge(sql, id);
    sql.update("insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) "
        + "values (?, ?, ?, ?, ?, ?, ?, ?)", id, customer.district(), customer.warehouse(), district, warehouse,
        new Timestamp(System.currentTimeMillis()), amount, warehouseName + "    " + districtName);
    return true;
  }

  /** A customer with bad credit gets the payment noted, in front of older notes. */
  private void charge(Sql sql, int id) throws SQLException {
    String where = " where c_w_id = ? and c_d_id = ? and c_id = ?";
    Object[] key = {customer.warehouse(), customer.district(), id};
    sql.update("update customer set c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, "
        + "c_payment_cnt = c_payment_cnt + 1" + where, amount, amount, key[0], key[1], key[2]);
    String credit = sql.one("select c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, "
        + "c_zip, c_phone, c_since, c_credit_lim, c_discount, c_balance from customer" + where,
        row -> row.getString(1), key);
    if (credit.equals("BC")) {
      String old = sql.one("select c_data from customer" + where, row -> row.getString(1), key);
      String data = id + " " + customer.district() + " " + customer.warehouse() + " " + district + " " + warehouse
          + " " + amount + "|" + old;
      sql.update("update customer set c_data = ?" + where, data.substring(0, Math.min(DATA_LENGTH, data.length())),
          key[0], key[1], key[2]);
    }
  }
}
