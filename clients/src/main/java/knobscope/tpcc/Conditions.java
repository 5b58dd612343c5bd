package knobscope.tpcc;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import knobscope.Closing;
import knobscope.sql.Sql;

/** Consistency conditions 1 to 4 of clause 3.3.2: each statement counts the places where one does not hold. */
final class Conditions {
  private static final Map<String, String> VIOLATIONS = new LinkedHashMap<>();

  static {
    // SQLite has no decimals: half a cent is equal
    VIOLATIONS.put("1: W_YTD is the sum of D_YTD", "select count(*) from warehouse where abs(w_ytd - "
        + "coalesce((select sum(d_ytd) from district where d_w_id = w_id), 0)) > 0.005");
    VIOLATIONS.put("2: D_NEXT_O_ID follows the last order", "select count(*) from district "
        + "where d_next_o_id - 1 <> coalesce((select max(o_id) from orders where o_w_id = d_w_id and o_d_id = d_id), 0) "
        + "or d_next_o_id - 1 <> coalesce((select max(no_o_id) from new_order where no_w_id = d_w_id "
        + "and no_d_id = d_id), d_next_o_id - 1)");
    VIOLATIONS.put("3: new orders have no gaps", "select count(*) from (select no_w_id, no_d_id from new_order "
        + "group by no_w_id, no_d_id having max(no_o_id) - min(no_o_id) + 1 <> count(*)) bad");
    VIOLATIONS.put("4: orders have all their lines", "select count(*) from "
        + "(select o_w_id, o_d_id, sum(o_ol_cnt) as wanted from orders group by o_w_id, o_d_id) o left join "
        + "(select ol_w_id, ol_d_id, count(*) as present from order_line group by ol_w_id, ol_d_id) l "
        + "on ol_w_id = o_w_id and ol_d_id = o_d_id where wanted <> coalesce(present, 0)");
  }

  private Conditions() {}

  /** All four, on one state of the database. */
  static List<Closing.Check> check(Sql sql) throws SQLException {
    List<Closing.Check> checks = new ArrayList<>();
    for (Map.Entry<String, String> condition : VIOLATIONS.entrySet()) {
      int violations = sql.one(condition.getValue(), row -> row.getInt(1));
      String detail = violations == 0 ? "" : "not so in " + violations + " warehouses or districts";
      checks.add(new Closing.Check("TPC-C condition " + condition.getKey(), violations == 0, detail));
    }
    sql.commit();
    return checks;
  }
}
