package knobscope.tpcc;

import java.sql.SQLException;
import java.util.List;
import knobscope.sql.Sql;

/** A customer, by number or (60 %) by last name: clauses 2.5.1.2 and 2.6.1.2. {@code last} is null or wins. */
record Who(int warehouse, int district, int id, String last) {
  static Who draw(Chance chance, int warehouse, int district) {
    String last = chance.percent(60) ? chance.lastName() : null;
    return new Who(warehouse, district, chance.customerId(), last);
  }

  /** The customer's number; of several with the name the one in the middle, in order of first names. */
  int find(Sql sql) throws SQLException {
    if (last == null) {
      return id;
    }
    List<Integer> found = sql.all("select c_id from customer where c_w_id = ? and c_d_id = ? and c_last = ? "
        + "order by c_first", row -> row.getInt(1), warehouse, district, last);
    if (found.isEmpty()) {
      throw new SQLException("no customer is called " + last);
    }
    return found.get((found.size() + 1) / 2 - 1);
  }
}
