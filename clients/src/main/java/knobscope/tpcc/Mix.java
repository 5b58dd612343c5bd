package knobscope.tpcc;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;

/**
 * What terminals do, and how fast. Properties: {@code tpcc.new_order} and so on (cards of a kind in the deck),
 * {@code tpcc.remote_item_share} and {@code tpcc.remote_payment_share} (of another warehouse), {@code tpcc.think_times}
 * (true, false, or a share of the times that people take). What is absent is as the specification says, but for times.
 */
record Mix(Map<Kind, Integer> cards, double remoteItems, double remotePayments, double waiting) {
  static Mix of(Properties properties) {
    Map<Kind, Integer> cards = new EnumMap<>(Kind.class);
    for (Kind kind : Kind.values()) {
      String key = "tpcc." + kind.name().toLowerCase(Locale.ROOT);
      cards.put(kind, Integer.parseInt(properties.getProperty(key, String.valueOf(kind.cards))));
    }
    return new Mix(cards, Double.parseDouble(properties.getProperty("tpcc.remote_item_share", "0.01")),
        Double.parseDouble(properties.getProperty("tpcc.remote_payment_share", "0.15")),
        waiting(properties.getProperty("tpcc.think_times", "false")));
  }

  private static double waiting(String times) {
    return switch (times) {
      case "true" -> 1;
      case "false" -> 0;
      default -> Double.parseDouble(times);
    };
  }
}
