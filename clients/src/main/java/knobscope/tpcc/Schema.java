package knobscope.tpcc;

import java.sql.SQLException;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import knobscope.sql.Sql;

/** The nine tables of clause 1.3 with their primary keys, and the two indexes that transactions need beside them. */
final class Schema {
  static final List<String> TABLES =
      List.of("warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "item", "stock");

  private static final String ADDRESS = "%1$s_street_1 varchar(20), %1$s_street_2 varchar(20), %1$s_city varchar(20), "
      + "%1$s_state char(2), %1$s_zip char(9), ";
  private static final String DISTS =
      IntStream.rangeClosed(1, Scale.DISTRICTS).mapToObj(i -> dist(i) + " char(24), ").collect(Collectors.joining());

  private static final List<String> CREATE = List.of(
      "create table warehouse (w_id integer not null, w_name varchar(10), " + ADDRESS.formatted("w")
          + "w_tax decimal(4,4), w_ytd decimal(12,2), primary key (w_id))",
      "create table district (d_id integer not null, d_w_id integer not null, d_name varchar(10), "
          + ADDRESS.formatted("d") + "d_tax decimal(4,4), d_ytd decimal(12,2), d_next_o_id integer, "
          + "primary key (d_w_id, d_id))",
      "create table customer (c_id integer not null, c_d_id integer not null, c_w_id integer not null, "
          + "c_first varchar(16), c_middle char(2), c_last varchar(16), " + ADDRESS.formatted("c")
          + "c_phone char(16), c_since DATETIME, c_credit char(2), c_credit_lim decimal(12,2), "
          + "c_discount decimal(4,4), c_balance decimal(12,2), c_ytd_payment decimal(12,2), c_payment_cnt integer, "
          + "c_delivery_cnt integer, c_data varchar(500), primary key (c_w_id, c_d_id, c_id))",
      "create table history (h_c_id integer, h_c_d_id integer, h_c_w_id integer, h_d_id integer, h_w_id integer, "
          + "h_date DATETIME, h_amount decimal(6,2), h_data varchar(24))",
      "create table orders (o_id integer not null, o_d_id integer not null, o_w_id integer not null, o_c_id integer, "
          + "o_entry_d DATETIME, o_carrier_id integer, o_ol_cnt integer, o_all_local integer, "
          + "primary key (o_w_id, o_d_id, o_id))",
      "create table new_order (no_o_id integer not null, no_d_id integer not null, no_w_id integer not null, "
          + "primary key (no_w_id, no_d_id, no_o_id))",
      "create table order_line (ol_o_id integer not null, ol_d_id integer not null, ol_w_id integer not null, "
          + "ol_number integer not null, ol_i_id integer, ol_supply_w_id integer, ol_delivery_d DATETIME, "
          + "ol_quantity integer, ol_amount decimal(6,2), ol_dist_info char(24), "
          + "primary key (ol_w_id, ol_d_id, ol_o_id, ol_number))",
      "create table item (i_id integer not null, i_im_id integer, i_name varchar(24), i_price decimal(5,2), "
          + "i_data varchar(50), primary key (i_id))",
      "create table stock (s_i_id integer not null, s_w_id integer not null, s_quantity integer, " + DISTS
          + "s_ytd integer, s_order_cnt integer, s_remote_cnt integer, s_data varchar(50), "
          + "primary key (s_w_id, s_i_id))");
  private static final List<String> INDEXES = List.of(
      "create index customer_by_name on customer (c_w_id, c_d_id, c_last, c_first)",
      "create index orders_by_customer on orders (o_w_id, o_d_id, o_c_id, o_id)");

  private Schema() {}

  /** The column of stock with the text for a district. */
  static String dist(int district) {
    return district < 10 ? "s_dist_0" + district : "s_dist_" + district;
  }

  static void create(Sql sql) throws SQLException {
    for (String statement : CREATE) {
      // what the standard calls a timestamp ends in 2038 in MySQL; clause 1.3.1 wants dates up to 2100
      sql.execute(statement.replace("DATETIME", sql.isPostgres() ? "timestamp" : "datetime"));
    }
    sql.commit();
  }

  /** After loading: one by one, rows would come much slower into a table that has an index. */
  static void createIndexes(Sql sql) throws SQLException {
    for (String statement : INDEXES) {
      sql.execute(statement);
    }
    sql.commit();
  }
}
