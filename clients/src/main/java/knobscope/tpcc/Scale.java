package knobscope.tpcc;

/**
 * Size of the database: clause 4.3 of the specification for {@code divisor} 1. A larger divisor makes tables smaller
 * for tests; such a database is not comparable to any other.
 */
record Scale(int warehouses, int divisor) {
  static final int DISTRICTS = 10;
  private static final int ITEMS = 100_000;
  private static final int CUSTOMERS = 3_000;
  private static final int NEW_ORDERS = 900;
  private static final int LAST_NAMES = 1_000;

  Scale {
    if (warehouses < 1 || divisor < 1 || divisor > 100) {
      throw new IllegalArgumentException("TPC-C needs a warehouse or more and a scale from 1 to 100, not "
          + warehouses + " and " + divisor);
    }
  }

  int items() {
    return ITEMS / divisor;
  }

  /** Customers of a district, and orders that it has at first. */
  int customers() {
    return CUSTOMERS / divisor;
  }

  /** Orders of a district that are not delivered yet at first; the youngest ones. */
  int newOrders() {
    return NEW_ORDERS / divisor;
  }

  /** How many of the 1000 last names occur. */
  int lastNames() {
    return Math.min(LAST_NAMES, customers());
  }
}
