package knobscope.tpch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What the texts of the queries become. */
class DialectTest {
  @Test
  void everyDialectHasAllQueries() {
    List<String> names = IntStream.rangeClosed(1, 22).mapToObj(number -> "Q" + number).toList();
    for (Dialect dialect : Dialect.values()) {
      Map<String, String> queries = dialect.queries(0.01);
      assertEquals(names, List.copyOf(queries.keySet()));
      for (String query : queries.values()) {
        assertEquals(-1, Math.max(query.indexOf("year_of"), query.indexOf('{')), query);
      }
      assertTrue(queries.get("Q11").contains("* 0.0100000000"), queries.get("Q11"));
    }
  }
}
