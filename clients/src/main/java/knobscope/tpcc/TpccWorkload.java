package knobscope.tpcc;

import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import knobscope.BindingException;
import knobscope.Closing;
import knobscope.SqlConnection;
import knobscope.TimedDB;
import knobscope.sql.Sql;
import site.ycsb.Client;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.Workload;
import site.ycsb.WorkloadException;

/**
 * TPC-C, revision 5.11, for every DBMS with a JDBC driver. Properties: {@code recordcount} (warehouses),
 * {@code tpcc.scale} (divides customers and items, for tests), and those of {@link Mix}. A load stores a warehouse for each insert of YCSB.
 */
public final class TpccWorkload extends Workload implements Closing {
  private Scale scale;
  private Mix mix;
  private boolean loading;
  private boolean schemaDone;
  private final AtomicInteger loaded = new AtomicInteger();

  @Override
  public void init(Properties properties) throws WorkloadException {
    try {
      scale = new Scale(Integer.parseInt(properties.getProperty(Client.RECORD_COUNT_PROPERTY)),
          Integer.parseInt(properties.getProperty("tpcc.scale", "1")));
      mix = Mix.of(properties);
    } catch (IllegalArgumentException e) {
      throw new WorkloadException(e);
    }
    loading = !Boolean.parseBoolean(properties.getProperty(Client.DO_TRANSACTIONS_PROPERTY, "true"));
    properties.setProperty(Client.OPERATION_COUNT_PROPERTY, String.valueOf(Integer.MAX_VALUE)); // a run ends by time
  }

  /** What a thread works with: terminals for a run, a population for a load. */
  @Override
  public Object initThread(Properties properties, int thread, int threads) throws WorkloadException {
    TimedDB client = TimedDB.ofThread();
    client.closeWith(this);
    try {
      Sql sql = sql(client.binding());
      return loading ? population(sql) : new Terminals(sql, scale, thread, threads, mix);
    } catch (SQLException | DBException e) {
      throw new WorkloadException(e);
    }
  }

  /** The first thread makes the tables, and the items that all warehouses share. */
  private synchronized Population population(Sql sql) throws SQLException {
    Population population = new Population(sql, scale);
    if (!schemaDone) {
      Schema.create(sql);
      population.items();
      schemaDone = true;
    }
    return population;
  }

  @Override
  public boolean doInsert(DB db, Object population) {
    Status status = TimedDB.ofThread().timed("LOAD", () -> {
      try {
        ((Population) population).warehouse(loaded.incrementAndGet());
        return Status.OK;
      } catch (SQLException e) {
        throw new BindingException(e);
      }
    });
    return status.isOk();
  }

  @Override
  public boolean doTransaction(DB db, Object terminals) {
    ((Terminals) terminals).next(TimedDB.ofThread());
    return true;
  }

  @Override
  public void afterLoad(DB binding) throws DBException {
    try {
      Sql sql = sql(binding);
      Schema.createIndexes(sql);
      for (Map.Entry<String, Long> table : expected().entrySet()) {
        long rows = sql.one("select count(*) from " + table.getKey(), row -> row.getLong(1));
        if (rows != table.getValue()) {
          throw new DBException(table.getKey() + " has " + rows + " rows instead of " + table.getValue());
        }
      }
      for (Check check : Conditions.check(sql)) {
        if (!check.holds()) {
          throw new DBException(check.name() + ": " + check.detail());
        }
      }
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  /** Rows of each table after loading; those of order_line are random, and condition 4 counts them. */
  private Map<String, Long> expected() {
    long districts = (long) scale.warehouses() * Scale.DISTRICTS;
    Map<String, Long> rows = new LinkedHashMap<>();
    rows.put("warehouse", (long) scale.warehouses());
    rows.put("district", districts);
    rows.put("item", (long) scale.items());
    rows.put("stock", (long) scale.items() * scale.warehouses());
    for (String table : List.of("customer", "history", "orders")) {
      rows.put(table, districts * scale.customers());
    }
    rows.put("new_order", districts * scale.newOrders());
    return rows;
  }

  @Override
  public List<Check> afterRun(DB binding) throws DBException {
    try {
      return Conditions.check(sql(binding));
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  private static Sql sql(DB binding) throws SQLException, DBException {
    if (!(binding instanceof SqlConnection lender)) {
      throw new DBException(binding.getClass().getName() + " has no SQL connection, which TPC-C needs");
    }
    return new Sql(lender.connection());
  }
}
