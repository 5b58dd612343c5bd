package knobscope.tpch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.math.BigDecimal;
import java.sql.Date;
import java.time.LocalDate;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What counts as the same answer, and what the texts of the queries become. */
class AnswerTest {
  @Test
  void numbersAreTheSameWhateverTheirType() {
    assertEquals("1996.00", Answer.text(1996));
    assertEquals("1996.00", Answer.text(1996L));
    assertEquals("1996.00", Answer.text(new BigDecimal("1996.0000")));
    assertEquals("1996.00", Answer.text(1995.9999999999998));
  }

  @Test
  void floatingPointSumsMayBeABillionthOff() {
    for (String exact : List.of("2.005", "2.0049", "2.0051", "-7.125", "12345678.995", "0.00")) {
      BigDecimal value = new BigDecimal(exact);
      BigDecimal little = new BigDecimal("0.000000001");
      assertEquals(Answer.text(value), Answer.text(value.add(little)), exact);
      assertEquals(Answer.text(value), Answer.text(value.subtract(little)), exact);
    }
    assertNotEquals(Answer.text(new BigDecimal("2.01")), Answer.text(new BigDecimal("2.02")));
  }

  @Test
  void textAndDatesAreAsWritten() {
    assertEquals("FRANCE", Answer.text("FRANCE                   "));
    assertEquals("1995-03-15", Answer.text(Date.valueOf("1995-03-15")));
    assertEquals("1995-03-15", Answer.text(LocalDate.of(1995, 3, 15)));
    assertEquals("null", Answer.text(null));
  }

  @Test
  void everyDialectHasAllQueries() {
    for (Dialect dialect : Dialect.values()) {
      List<String> queries = dialect.queries(0.01);
      assertEquals(Streams.NAMES.size(), queries.size());
      assertEquals(List.of(), queries.stream().filter(query -> query.contains("year_of") || query.contains("{")).toList());
      assertEquals(true, queries.get(10).contains("* 0.0100000000"), queries.get(10));
    }
  }
}
