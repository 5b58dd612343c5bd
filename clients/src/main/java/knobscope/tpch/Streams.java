package knobscope.tpch;

import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import knobscope.sql.Sql;

/** The streams of one client thread, one after the other: all queries, each time in an order drawn anew. */
final class Streams {
  static final List<String> NAMES = IntStream.rangeClosed(1, 22).mapToObj(number -> "Q" + number).toList();

  private final Sql sql;
  private final Map<String, String> queries = new HashMap<>();
  private final Map<String, String> answers = new HashMap<>();
  private final Deque<String> rest = new ArrayDeque<>();
  private final Random random;

  /** Thread n draws the same orders in every run. */
  Streams(Sql sql, List<String> queries, int thread) throws SQLException {
    this.sql = sql;
    random = new Random(thread);
    for (int i = 0; i < queries.size(); i++) {
      this.queries.put(NAMES.get(i), queries.get(i));
    }
    sql.all("select query, digest from tpch_answers", row -> answers.put(row.getString(1), row.getString(2)));
    sql.commit();
  }

  /** Name of the query whose turn it is. */
  String next() {
    if (rest.isEmpty()) {
      List<String> order = new ArrayList<>(NAMES);
      Collections.shuffle(order, random);
      rest.addAll(order);
    }
    return rest.poll();
  }

  /** Runs a query to its last row and says whether the answer is the one after loading. */
  boolean answersAsLoaded(String name) throws SQLException {
    try {
      return Answer.digest(sql, queries.get(name)).equals(answers.get(name));
    } catch (SQLException e) {
      sql.rollback();
      throw e;
    }
  }

  /** Keeps the digest of every answer in the database itself: it goes where the data goes. */
  static void storeAnswers(Sql sql, List<String> queries) throws SQLException {
    for (int i = 0; i < queries.size(); i++) {
      sql.update("insert into tpch_answers values (?, ?)", NAMES.get(i), Answer.digest(sql, queries.get(i)));
    }
    sql.commit();
  }
}
