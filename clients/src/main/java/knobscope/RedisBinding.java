package knobscope;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB for Redis and its forks; one connection for each client thread. A record is a hash; a sorted set of all keys, in
 * order of their text, serves scans. Properties: {@code redis.socket}, or {@code redis.port} on 127.0.0.1, and
 * {@code redis.password}. Statements are commands, words with blanks between them.
 */
public final class RedisBinding extends DB implements ReadsBack, CountsRecords {
  private static final String INDEX = "knobscope:keys";
  private static final int BATCH = 200;

  private RespConnection connection;
  private boolean loading;
  private int waiting;

  /** A call on the connection. */
  private interface Call<T> {
    T run() throws IOException;
  }

  @Override
  public void init() throws DBException {
    Settings settings = new Settings(getProperties());
    loading = settings.loading();
    try {
      String port = getProperties().getProperty("redis.port", "6379");
      connection = new RespConnection(getProperties().getProperty("redis.socket"), Integer.parseInt(port));
      String password = getProperties().getProperty("redis.password");
      if (password != null) {
        connection.call("AUTH", password);
      }
    } catch (IOException e) {
      throw new DBException(e);
    }
    try {
      for (String statement : settings.init()) {
        connection.call(statement.trim().split("\\s+"));
      }
    } catch (IOException e) {
      throw new RefusedException(e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      drain();
      connection.close();
    } catch (IOException e) {
      throw new DBException(e);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return answer(() -> {
      ask(key, fields);
      connection.flush();
      copy(connection.answer(), fields, result);
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  private void ask(String key, Set<String> fields) {
    List<String> words = new ArrayList<>(List.of(fields == null ? "HGETALL" : "HMGET", key));
    if (fields != null) {
      words.addAll(fields);
    }
    connection.add(words.toArray(String[]::new));
  }

  private static void copy(Object row, Set<String> fields, Map<String, ByteIterator> result) {
    Iterator<?> answer = ((List<?>) row).iterator();
    Iterator<String> names = fields == null ? null : fields.iterator();
    while (answer.hasNext()) {
      String name = names == null ? (String) answer.next() : names.next();
      String value = (String) answer.next();
      if (value != null) {
        result.put(name, new StringByteIterator(value));
      }
    }
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return answer(() -> {
      String limit = String.valueOf(count);
      List<?> keys = (List<?>) connection.call("ZRANGEBYLEX", INDEX, "[" + start, "+", "LIMIT", "0", limit);
      keys.forEach(key -> ask((String) key, fields));
      for (Object answer : connection.answers(keys.size())) {
        HashMap<String, ByteIterator> row = new HashMap<>();
        copy(answer, fields, row);
        result.add(row);
      }
      return Status.OK;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return answer(() -> {
      connection.call(hashSet(key, values));
      return Status.OK;
    });
  }

  /** A load does not wait for each answer. */
  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return answer(() -> {
      connection.add(hashSet(key, values));
      connection.add("ZADD", INDEX, "0", key);
      waiting += 2;
      if (!loading || waiting >= BATCH) {
        drain();
      }
      return loading ? Status.BATCHED_OK : Status.OK;
    });
  }

  private void drain() throws IOException {
    int count = waiting;
    waiting = 0;
    connection.answers(count);
  }

  private static String[] hashSet(String key, Map<String, ByteIterator> values) {
    List<String> words = new ArrayList<>(List.of("HSET", key));
    values.forEach((field, value) -> {
      words.add(field);
      words.add(value.toString());
    });
    return words.toArray(String[]::new);
  }

  @Override
  public Status delete(String table, String key) {
    return answer(() -> {
      connection.call("ZREM", INDEX, key);
      return Long.valueOf(0).equals(connection.call("DEL", key)) ? Status.NOT_FOUND : Status.OK;
    });
  }

  /** The query is a command that answers names and values in turn, such as {@code CONFIG GET *}. */
  @Override
  public Map<String, String> readAll(String query) throws DBException {
    try {
      List<?> answer = (List<?>) connection.call(query.trim().split("\\s+"));
      Map<String, String> values = new LinkedHashMap<>();
      for (int i = 0; i + 1 < answer.size(); i += 2) {
        values.put((String) answer.get(i), (String) answer.get(i + 1));
      }
      return values;
    } catch (IOException e) {
      throw new DBException(e);
    }
  }

  /** Of names and values in turn, the first value; of any other answer its text. */
  @Override
  public String readOne(String query) throws DBException {
    try {
      Object answer = connection.call(query.trim().split("\\s+"));
      if (answer instanceof List<?> list) {
        return list.size() > 1 ? (String) list.get(1) : null;
      }
      return answer == null ? null : answer.toString();
    } catch (IOException e) {
      throw new DBException(e);
    }
  }

  @Override
  public long countRecords(String table) throws DBException {
    try {
      return (Long) connection.call("ZCARD", INDEX);
    } catch (IOException e) {
      throw new DBException(e);
    }
  }

  private static Status answer(Call<Status> call) {
    try {
      return call.run();
    } catch (IOException e) {
      throw new BindingException(e);
    }
  }
}
