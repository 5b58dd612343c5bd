package knobscope.tpcc;

import java.math.BigDecimal;
import java.util.SplittableRandom;

/** Random values as clauses 2.1.6 and 4.3.2 define them. */
final class Chance {
  /**
   * The constants C of NURand. That for last names differs between load and run by 66: clause 2.1.6.1 wants a
   * difference between 65 and 119 that is neither 96 nor 112.
   */
  static final int C_LAST_LOAD = 157;
  static final int C_LAST_RUN = 223;
  private static final int C_CUSTOMER = 259;
  private static final int C_ITEM = 7911;

  private static final String[] SYLLABLES =
      {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"};
  private static final String ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  private static final int LETTERS = 26;

  private final SplittableRandom random;
  private final Scale scale;
  private final int cLast;

  private Chance(SplittableRandom random, Scale scale, int cLast) {
    this.random = random;
    this.scale = scale;
    this.cLast = cLast;
  }

  /** For loading: the same seed gives the same rows. */
  static Chance forLoad(Scale scale, long seed) {
    return new Chance(new SplittableRandom(seed), scale, C_LAST_LOAD);
  }

  /** For running: every run has other values. */
  static Chance forRun(Scale scale) {
    return new Chance(new SplittableRandom(), scale, C_LAST_RUN);
  }

  /** Uniform, both ends included. */
  int between(int from, int to) {
    return random.nextInt(from, to + 1);
  }

  boolean percent(int share) {
    return between(1, 100) <= share;
  }

  /** Whether something happens that happens in this share of all cases. */
  boolean hits(double share) {
    return uniform() < share;
  }

  /** Between 0 and 1, for distributions that are computed. */
  double uniform() {
    return random.nextDouble();
  }

  /** Uniform between two amounts in the smallest unit, e.g. cents for two decimals. */
  BigDecimal decimal(int from, int to, int decimals) {
    return BigDecimal.valueOf(between(from, to), decimals);
  }

  /** The non-uniform distribution of clause 2.1.6. */
  int nurand(int a, int c, int from, int to) {
    return ((between(0, a) | between(from, to)) + c) % (to - from + 1) + from;
  }

  int customerId() {
    return nurand(1023, C_CUSTOMER, 1, scale.customers());
  }

  int itemId() {
    return nurand(8191, C_ITEM, 1, scale.items());
  }

  String lastName() {
    return lastName(nurand(255, cLast, 0, scale.lastNames() - 1));
  }

  /** The last name of a number between 0 and 999: a syllable per digit (clause 4.3.2.3). */
  static String lastName(int number) {
    return SYLLABLES[number / 100] + SYLLABLES[number / 10 % 10] + SYLLABLES[number % 10];
  }

  /** Any other warehouse than this one; itself when it is the only one. */
  int otherWarehouse(int home) {
    if (scale.warehouses() == 1) {
      return home;
    }
    int other = between(1, scale.warehouses() - 1);
    return other < home ? other : other + 1;
  }

  String alphanumeric(int shortest, int longest) {
    return text(between(shortest, longest), 0, ALPHANUMERIC.length());
  }

  String letters(int length) {
    return text(length, 0, LETTERS);
  }

  String digits(int length) {
    return text(length, 2 * LETTERS, ALPHANUMERIC.length());
  }

  String zip() {
    return digits(4) + "11111";
  }

  /** Data of an item or of stock: one in ten holds "ORIGINAL" somewhere (clause 4.3.3.1). */
  String data() {
    String text = alphanumeric(26, 50);
    if (!percent(10)) {
      return text;
    }
    String mark = "ORIGINAL";
    int at = between(0, text.length() - mark.length());
    return text.substring(0, at) + mark + text.substring(at + mark.length());
  }

  /** All numbers from 1 to {@code count} in random order. */
  int[] permutation(int count) {
    int[] numbers = new int[count];
    for (int i = 0; i < count; i++) {
      int j = between(0, i);
      numbers[i] = numbers[j];
      numbers[j] = i + 1;
    }
    return numbers;
  }

  private String text(int length, int from, int to) {
    char[] text = new char[length];
    for (int i = 0; i < length; i++) {
      text[i] = ALPHANUMERIC.charAt(random.nextInt(from, to));
    }
    return new String(text);
  }
}
