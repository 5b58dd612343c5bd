package knobscope;

import com.mongodb.MongoException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Projections;
import com.mongodb.client.model.Sorts;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.bson.Document;
import org.bson.conversions.Bson;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB for MongoDB: one client, which all threads share. Properties: {@code mongodb.url} (write concern and the like are
 * parts of it) and {@code mongodb.database}. Statements and questions are commands of the administration, in JSON.
 */
public final class MongoBinding extends DB implements ReadsBack, CountsRecords {
  private static final int BATCH = 1000;

  private static MongoClient client;
  private static int users;

  private final List<Document> waiting = new ArrayList<>();
  private MongoDatabase database;
  private String waitingFor;
  private boolean loading;

  @Override
  public void init() throws DBException {
    Settings settings = new Settings(getProperties());
    loading = settings.loading();
    try {
      synchronized (MongoBinding.class) {
        if (users++ == 0) {
          client = MongoClients.create(getProperties().getProperty("mongodb.url"));
          run(settings.init());
        }
      }
      database = client.getDatabase(getProperties().getProperty("mongodb.database", "ycsb"));
      database.runCommand(new Document("ping", 1));
    } catch (IOException | MongoException e) {
      throw new DBException(e);
    }
  }

  private static void run(List<String> commands) throws DBException {
    try {
      commands.forEach(command -> client.getDatabase("admin").runCommand(Document.parse(command)));
    } catch (MongoException e) {
      throw new RefusedException(e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      store();
    } catch (MongoException e) {
      throw new DBException(e);
    }
    synchronized (MongoBinding.class) {
      if (--users == 0) {
        client.close();
        client = null;
      }
    }
  }

  private void store() {
    if (!waiting.isEmpty()) {
      database.getCollection(waitingFor).insertMany(waiting);
      waiting.clear();
    }
  }

  private MongoCollection<Document> collection(String table) {
    return database.getCollection(table);
  }

  private static Bson wanted(Set<String> fields) {
    return fields == null ? null : Projections.include(new ArrayList<>(fields));
  }

  private static void copy(Document row, Map<String, ByteIterator> result) {
    row.forEach((name, value) -> {
      if (!name.equals("_id")) {
        result.put(name, new StringByteIterator((String) value));
      }
    });
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    Document row = collection(table).find(Filters.eq("_id", key)).projection(wanted(fields)).first();
    if (row == null) {
      return Status.NOT_FOUND;
    }
    copy(row, result);
    return Status.OK;
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    for (Document row : collection(table).find(Filters.gte("_id", start)).sort(Sorts.ascending("_id")).limit(count)
        .projection(wanted(fields))) {
      HashMap<String, ByteIterator> values = new HashMap<>();
      copy(row, values);
      result.add(values);
    }
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    Document change = new Document("$set", document(values));
    long found = collection(table).updateOne(Filters.eq("_id", key), change).getMatchedCount();
    return found > 0 ? Status.OK : Status.NOT_FOUND;
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    Document row = document(values).append("_id", key);
    if (!loading) {
      collection(table).insertOne(row);
      return Status.OK;
    }
    waiting.add(row);
    waitingFor = table;
    if (waiting.size() >= BATCH) {
      store();
    }
    return Status.BATCHED_OK;
  }

  private static Document document(Map<String, ByteIterator> values) {
    Document row = new Document();
    values.forEach((name, value) -> row.append(name, value.toString()));
    return row;
  }

  @Override
  public Status delete(String table, String key) {
    long deleted = collection(table).deleteOne(Filters.eq("_id", key)).getDeletedCount();
    return deleted > 0 ? Status.OK : Status.NOT_FOUND;
  }

  /** Runs a command such as {@code {getParameter: '*'}}; names inside other documents get dots. */
  @Override
  public Map<String, String> readAll(String query) throws DBException {
    try {
      Map<String, String> values = new LinkedHashMap<>();
      flatten("", client.getDatabase("admin").runCommand(Document.parse(query)), values);
      return values;
    } catch (MongoException e) {
      throw new DBException(e);
    }
  }

  private static void flatten(String prefix, Document document, Map<String, String> values) {
    document.forEach((name, value) -> {
      if (value instanceof Document inner) {
        flatten(prefix + name + ".", inner, values);
      } else if (value != null) {
        values.put(prefix + name, value.toString());
      }
    });
  }

  @Override
  public String readOne(String query) throws DBException {
    return readAll(query).values().stream().findFirst().orElse(null);
  }

  @Override
  public long countRecords(String table) throws DBException {
    try {
      return collection(table).countDocuments();
    } catch (MongoException e) {
      throw new DBException(e);
    }
  }
}
