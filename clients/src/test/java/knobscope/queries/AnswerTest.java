package knobscope.queries;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.math.BigDecimal;
import java.sql.Date;
import java.time.LocalDate;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What counts as the same answer. */
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
    assertEquals("NaN", Answer.text(Double.NaN));
  }
}
