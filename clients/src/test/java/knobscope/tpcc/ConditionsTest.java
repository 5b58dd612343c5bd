package knobscope.tpcc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.List;
import java.util.Properties;
import knobscope.Closing;
import knobscope.sql.Sql;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Transactions on a small database keep the conditions, broken ones do not. */
class ConditionsTest {
  private static final Scale SMALL = new Scale(2, 100);

  @TempDir
  Path directory;

  private Connection connection;
  private Sql sql;
  private Chance chance;

  @BeforeEach
  void load() throws SQLException {
    connection = DriverManager.getConnection("jdbc:sqlite:" + directory.resolve("tpcc.sqlite"));
    connection.createStatement().execute("pragma synchronous=off");
    sql = new Sql(connection);
    chance = Chance.forRun(SMALL);
    Schema.create(sql);
    Population population = new Population(sql, SMALL);
    population.items();
    population.warehouse(1);
    population.warehouse(2);
    Schema.createIndexes(sql);
  }

  @AfterEach
  void close() throws SQLException {
    connection.close();
  }

  private List<Integer> broken() throws SQLException {
    return Conditions.check(sql).stream().filter(check -> !check.holds())
        .map(check -> Character.getNumericValue(check.name().charAt("TPC-C condition ".length()))).toList();
  }

  private long count(String table) throws SQLException {
    return sql.one("select count(*) from " + table, row -> row.getLong(1));
  }

  @Test
  void transactionsOfEveryKindKeepThem() throws SQLException {
    assertEquals(List.of(), broken());
    Mix mix = Mix.of(new Properties());
    Deck deck = new Deck(chance, mix);
    for (int i = 0; i < 300; i++) {
      Terminals.carryOut(sql, deck.next().draw(chance, SMALL, mix, 1 + i % 2, 1 + i % 10));
    }
    assertEquals(List.of(), broken());
  }

  @Test
  void aNewOrderForAnItemThatDoesNotExistLeavesNothing() throws SQLException {
    NewOrder wrong = new NewOrder(1, 1, 1, List.of(new NewOrder.Line(1, 1, 1), new NewOrder.Line(1001, 1, 1)));
    long orders = count("orders");
    long lines = count("order_line");
    Terminals.carryOut(sql, wrong);
    assertEquals(orders, count("orders"));
    assertEquals(lines, count("order_line"));
    assertEquals(List.of(), broken());
  }

  @Test
  void aNewOrderTakesFromStockAndFillsItUp() throws SQLException {
    sql.update("update stock set s_quantity = 15 where s_w_id = 1 and s_i_id in (1, 2)");
    Terminals.carryOut(sql, new NewOrder(1, 1, 1, List.of(new NewOrder.Line(1, 1, 5), new NewOrder.Line(2, 1, 6))));
    List<Integer> left = sql.all("select s_quantity from stock where s_w_id = 1 and s_i_id in (1, 2) order by s_i_id",
        row -> row.getInt(1));
    assertEquals(List.of(10, 100), left);
  }

  @Test
  void aPaymentIsNotedForACustomerWithBadCredit() throws SQLException {
    sql.update("update customer set c_credit = 'BC' where c_w_id = 1 and c_d_id = 1 and c_id = 7");
    Terminals.carryOut(sql, new Payment(1, 1, new Who(1, 1, 7, null), new BigDecimal("12.34")));
    String data = sql.one("select c_data from customer where c_w_id = 1 and c_d_id = 1 and c_id = 7",
        row -> row.getString(1));
    assertTrue(data.startsWith("7 1 1 1 1 12.34|"), data);
    assertTrue(data.length() <= 500);
  }

  @Test
  void aDeliveryTakesTheOldestOrderOfEachDistrict() throws SQLException {
    long waiting = count("new_order");
    Terminals.carryOut(sql, new Delivery(1, 3));
    assertEquals(waiting - 10, count("new_order"));
    assertEquals(10, count("orders where o_w_id = 1 and o_id = 22 and o_carrier_id = 3"));
    assertEquals(List.of(), broken());
  }

  @Test
  void aPaymentThatForgetsTheDistrictBreaksTheFirst() throws SQLException {
    Terminals.carryOut(sql, on -> on.update("update warehouse set w_ytd = w_ytd + 1 where w_id = 1") == 1);
    assertEquals(List.of(1), broken());
  }

  @Test
  void anOrderNumberThatIsLostBreaksTheSecond() throws SQLException {
    Terminals.carryOut(sql,
        on -> on.update("update district set d_next_o_id = d_next_o_id + 1 where d_w_id = 1 and d_id = 1") == 1);
    assertEquals(List.of(2), broken());
  }

  @Test
  void aDeliveryThatTakesAYoungOrderBreaksTheThird() throws SQLException {
    Terminals.carryOut(sql,
        on -> on.update("delete from new_order where no_w_id = 1 and no_d_id = 1 and no_o_id = 25") == 1);
    assertEquals(List.of(3), broken());
  }

  @Test
  void anOrderLineThatIsLostBreaksTheFourth() throws SQLException {
    Terminals.carryOut(sql,
        on -> on.update("delete from order_line where ol_w_id = 1 and ol_d_id = 1 and ol_o_id = 9") > 0);
    List<Closing.Check> checks = Conditions.check(sql);
    assertEquals(List.of(4), broken());
    assertEquals("not so in 1 warehouses or districts", checks.get(3).detail());
  }
}
