package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class StatementCountsTest {
  private static List<String> of(String sql) {
    return StatementCounts.targetsOf(sql).stream().map(target -> target.kind() + " " + target.table()).toList();
  }

  @Test
  void aCommonTableExpressionIsNoTable() {
    String sql = "with revenue (no, total) as (select l_suppkey, sum(x) from lineitem group by 1), top as "
        + "(select max(total) from revenue) select s_name from supplier, revenue where no = s_suppkey";
    assertEquals(List.of("select lineitem", "select supplier"), of(sql));
  }

  @Test
  void everyTableOfAStatementIsFound() {
    assertEquals(List.of("select district"), of("select d_tax from district where d_id = ?"));
    assertEquals(List.of("select warehouse", "select customer"), of("select w_tax from warehouse, customer where w_id = ?"));
    assertEquals(List.of("select order_line", "select stock"),
        of("SELECT count(*) FROM order_line JOIN stock ON s_i_id = ol_i_id WHERE ol_w_id = ?"));
    assertEquals(List.of("insert new_order"), of("insert into new_order (no_o_id) values (?)"));
    assertEquals(List.of("update warehouse"), of("update warehouse set w_ytd = w_ytd + ? where w_id = ?"));
    assertEquals(List.of("delete new_order"), of("delete from new_order where no_o_id = ?"));
    assertEquals(List.of("select item"), of("select i_id from (select * from item) x where i_id in (select i_id from item)"));
  }

  @Test
  void aWindowHasWholeStatements() throws InterruptedException {
    StatementCounts counts = new StatementCounts();
    String sql = "select 1 from "
        + IntStream.range(0, 100).mapToObj(number -> "t" + number).collect(Collectors.joining(", "));
    Thread thread = new Thread(() -> {
      while (!Thread.currentThread().isInterrupted()) {
        counts.add("T", sql, 2);
      }
    });
    thread.start();
    for (int round = 0; round < 1000; round++) {
      counts.openWindow();
      Thread.sleep(0, 50_000);
      counts.closeWindow();
      Set<List<Long>> sums = counts.window().values().stream()
          .map(each -> List.of(2 * each.calls().sum(), each.rows().sum())).collect(Collectors.toSet());
      assertTrue(sums.size() <= 1, sums::toString);
    }
    thread.interrupt();
    thread.join();
  }

  @Test
  void aThreadWithoutAnOperationCountsNothing() {
    StatementCounts.SHARED.openWindow();
    StatementCounts.SHARED.add("select 1 from item", 1);
    StatementCounts.SHARED.closeWindow();
    assertEquals(0, StatementCounts.SHARED.window().size());
  }
}
