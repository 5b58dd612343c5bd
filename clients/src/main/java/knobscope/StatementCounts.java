package knobscope;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.HdrHistogram.WriterReaderPhaser;

/**
 * Statements of SQL by transaction, table and kind, each with the rows that it returned or changed: all that were
 * carried out, also those of transactions that were rolled back or repeated. A statement about several tables counts
 * for each of them.
 */
public final class StatementCounts {
  public static final StatementCounts SHARED = new StatementCounts();

  private static final Pattern KIND = Pattern.compile("\\s*(\\w+)");
  private static final Pattern TABLES =
      Pattern.compile("\\b(?:from|into|update|join)\\s+(\\w+(?:(?:\\s+\\w+)?\\s*,\\s*\\w+)*)", Pattern.CASE_INSENSITIVE);

  /** Names of common table expressions: they are no tables. */
  private static final Pattern EXPRESSIONS =
      Pattern.compile("(\\w+)(?:\\s*\\([^)]*\\))?\\s+as\\s*\\(", Pattern.CASE_INSENSITIVE);

  private final Map<String, List<Target>> targets = new ConcurrentHashMap<>();
  private final WriterReaderPhaser phaser = new WriterReaderPhaser();
  private volatile Map<Key, Sums> counts = new ConcurrentHashMap<>();
  private volatile Map<Key, Sums> window = Map.of();

  /** What a statement does to one table. */
  record Target(String table, String kind) {}

  /** What is counted apart. */
  record Key(String transaction, String table, String kind) implements Comparable<Key> {
    @Override
    public int compareTo(Key other) {
      return toString().compareTo(other.toString());
    }
  }

  /** What is counted. */
  record Sums(LongAdder calls, LongAdder rows) {}

  /** Counts a statement for the operation that this thread is at; without one nothing is counted. */
  public void add(String sql, long rows) {
    String transaction = TimedDB.operationOfThread();
    if (transaction != null) {
      add(transaction, sql, rows);
    }
  }

  /** Counts a statement for all its tables before the window begins or ends, or for all of them after that. */
  void add(String transaction, String sql, long rows) {
    List<Target> tables = targets.computeIfAbsent(sql, StatementCounts::targetsOf);
    long ticket = phaser.writerCriticalSectionEnter();
    try {
      Map<Key, Sums> current = counts;
      for (Target target : tables) {
        Sums sums = current.computeIfAbsent(new Key(transaction, target.table(), target.kind()),
            key -> new Sums(new LongAdder(), new LongAdder()));
        sums.calls().increment();
        sums.rows().add(rows);
      }
    } finally {
      phaser.writerCriticalSectionExit(ticket);
    }
  }

  /** The tables that a statement names, in its words. */
  static List<Target> targetsOf(String sql) {
    Matcher first = KIND.matcher(sql);
    String word = first.lookingAt() ? first.group(1).toLowerCase(Locale.ROOT) : "";
    String kind = word.equals("with") ? "select" : word;
    Set<String> tables = new LinkedHashSet<>();
    for (Matcher named = TABLES.matcher(sql); named.find();) {
      for (String table : named.group(1).toLowerCase(Locale.ROOT).split("\\s*,\\s*")) {
        tables.add(table.split("\\s")[0]); // without its alias
      }
    }
    if (word.equals("with")) {
      EXPRESSIONS.matcher(sql).results().forEach(name -> tables.remove(name.group(1).toLowerCase(Locale.ROOT)));
    }
    return tables.stream().map(table -> new Target(table, kind)).toList();
  }

  /** The measured window begins: what was counted before is left out. */
  void openWindow() {
    take();
  }

  /** The measured window ends: what is counted from now on is left out. */
  void closeWindow() {
    window = new TreeMap<>(take());
  }

  /** Calls and rows in the window, once it is closed. */
  Map<Key, Sums> window() {
    return window;
  }

  /** Everything since the last call, all at one moment: to sum up while threads count would take many transactions. */
  private Map<Key, Sums> take() {
    phaser.readerLock();
    try {
      Map<Key, Sums> before = counts;
      counts = new ConcurrentHashMap<>();
      phaser.flipPhase();
      return before;
    } finally {
      phaser.readerUnlock();
    }
  }
}
