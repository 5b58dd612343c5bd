package knobscope.tpcc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import java.util.Properties;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ChanceTest {
  private static final Scale FULL = new Scale(5, 1);

  @Test
  void lastNamesAreThoseOfTheSpecification() {
    assertEquals("BAROUGHTABLE", Chance.lastName(12));
    assertEquals("PRICALLYOUGHT", Chance.lastName(371));
    assertEquals("EINGEINGEING", Chance.lastName(999));
  }

  @Test
  void constantsOfLoadAndRunDifferAsTheSpecificationAllows() {
    int delta = Math.abs(Chance.C_LAST_RUN - Chance.C_LAST_LOAD);
    assertTrue(delta >= 65 && delta <= 119 && delta != 96 && delta != 112, "delta " + delta);
  }

  @Test
  void nurandStaysInRangeAndIsNotUniform() {
    Chance chance = Chance.forLoad(FULL, 1);
    int[] drawn = IntStream.range(0, 300_000).map(i -> chance.itemId()).sorted().toArray();
    assertTrue(drawn[0] >= 1 && drawn[drawn.length - 1] <= FULL.items());
    Map<Integer, Integer> counts = new java.util.HashMap<>();
    Arrays.stream(drawn).forEach(item -> counts.merge(item, 1, Integer::sum));
    int hottest = counts.values().stream().mapToInt(Integer::intValue).max().orElseThrow();
    assertTrue(hottest > 20, "uniform would be 3 each; the hottest item came " + hottest + " times");
  }

  @Test
  void theDeckHoldsTheMixExactly() {
    Deck deck = new Deck(Chance.forLoad(FULL, 1), Mix.of(new Properties()));
    for (int round = 0; round < 3; round++) {
      Map<Kind, Integer> dealt = new EnumMap<>(Kind.class);
      IntStream.range(0, 100).forEach(i -> dealt.merge(deck.next(), 1, Integer::sum));
      assertEquals(Map.of(Kind.NEW_ORDER, 45, Kind.PAYMENT, 43, Kind.ORDER_STATUS, 4, Kind.DELIVERY, 4,
          Kind.STOCK_LEVEL, 4), dealt);
    }
  }

  @Test
  void anotherMixHasAnotherDeck() {
    Properties reading = new Properties();
    reading.put("tpcc.payment", "0");
    reading.put("tpcc.stock_level", "100");
    Deck deck = new Deck(Chance.forLoad(FULL, 1), Mix.of(reading));
    Map<Kind, Integer> dealt = new EnumMap<>(Kind.class);
    IntStream.range(0, 153).forEach(i -> dealt.merge(deck.next(), 1, Integer::sum));
    assertEquals(Map.of(Kind.NEW_ORDER, 45, Kind.ORDER_STATUS, 4, Kind.DELIVERY, 4, Kind.STOCK_LEVEL, 100), dealt);
  }

  @Test
  void ordersAndPaymentsGoToOtherWarehousesAsOftenAsTheyShould() {
    assertRemote(0.01, 0.15, Mix.of(new Properties()));
    Properties local = new Properties();
    local.put("tpcc.remote_item_share", "0");
    local.put("tpcc.remote_payment_share", "0.5");
    assertRemote(0, 0.5, Mix.of(local));
  }

  private static void assertRemote(double items, double payments, Mix mix) {
    Chance chance = Chance.forLoad(FULL, 1);
    int lines = 0;
    long remoteLines = 0;
    int wrong = 0;
    int remotePayments = 0;
    for (int i = 0; i < 20_000; i++) {
      NewOrder order = NewOrder.draw(chance, FULL, mix, 2);
      assertTrue(order.lines().size() >= 5 && order.lines().size() <= 15);
      lines += order.lines().size();
      remoteLines += order.lines().stream().filter(line -> line.supplier() != 2).count();
      NewOrder.Line last = order.lines().get(order.lines().size() - 1);
      wrong += last.item() > FULL.items() ? 1 : 0;
      remotePayments += Payment.draw(chance, mix, 2).customer().warehouse() != 2 ? 1 : 0;
    }
    assertEquals(items, (double) remoteLines / lines, 0.001);
    assertEquals(0.01, wrong / 20_000.0, 0.003);
    assertEquals(payments, remotePayments / 20_000.0, 0.01);
  }

  @Test
  void anotherWarehouseIsAnyOther() {
    Chance chance = Chance.forLoad(FULL, 1);
    for (int i = 0; i < 1000; i++) {
      int other = chance.otherWarehouse(3);
      assertNotEquals(3, other);
      assertTrue(other >= 1 && other <= 5);
    }
    assertEquals(1, Chance.forLoad(new Scale(1, 1), 1).otherWarehouse(1));
  }

  @Test
  void aPermutationHasEveryNumberOnce() {
    int[] sorted = Arrays.stream(Chance.forLoad(FULL, 1).permutation(3000)).sorted().toArray();
    assertTrue(Arrays.equals(IntStream.rangeClosed(1, 3000).toArray(), sorted));
  }
}
