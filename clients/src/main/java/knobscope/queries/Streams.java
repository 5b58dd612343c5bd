package knobscope.queries;

import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import knobscope.sql.Sql;

/** The streams of one client thread, one after the other: all queries, each time in an order drawn anew. */
final class Streams {
  private final Sql sql;
  private final Map<String, String> queries;
  private final Map<String, String> answers = new HashMap<>();
  private final Deque<String> rest = new ArrayDeque<>();
  private final Random random;

  /** Thread n draws the same orders in every run. */
  Streams(Sql sql, Map<String, String> queries, String table, int thread) throws SQLException {
    this.sql = sql;
    this.queries = queries;
    random = new Random(thread);
    sql.all("select query, digest from " + table, row -> answers.put(row.getString(1), row.getString(2)));
    sql.commit();
  }

  /** Name of the query whose turn it is. */
  String next() {
    if (rest.isEmpty()) {
      List<String> order = new ArrayList<>(queries.keySet());
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
  static void storeAnswers(Sql sql, Map<String, String> queries, String table) throws SQLException {
    for (Map.Entry<String, String> query : queries.entrySet()) {
      try {
        sql.update("insert into " + table + " values (?, ?)", query.getKey(), Answer.digest(sql, query.getValue()));
      } catch (SQLException e) {
        throw new SQLException(query.getKey() + ": " + e.getMessage(), e);
      }
    }
    sql.commit();
  }
}
