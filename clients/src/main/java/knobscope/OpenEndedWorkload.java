package knobscope;

import java.util.Properties;
import site.ycsb.Client;
import site.ycsb.WorkloadException;
import site.ycsb.workloads.CoreWorkload;

/**
 * YCSB's core workload for runs that end by time, not by number of operations. YCSB uses {@code operationcount} for
 * two things: when to stop, and how far inserts will widen the key space of a zipfian choice. A count that is never
 * reached makes a key space so wide that nearly every key drawn does not exist yet and is drawn again (5000 times for
 * one scan of workload E over 20,000 records). So the two uses get two values.
 */
public final class OpenEndedWorkload extends CoreWorkload {
  /** Here {@code operationcount} is the number of operations to expect; the default is the number of records. */
  @Override
  public void init(Properties properties) throws WorkloadException {
    String records = properties.getProperty(Client.RECORD_COUNT_PROPERTY, Client.DEFAULT_RECORD_COUNT);
    properties.putIfAbsent(Client.OPERATION_COUNT_PROPERTY, records);
    super.init(properties);
    properties.setProperty(Client.OPERATION_COUNT_PROPERTY, String.valueOf(Integer.MAX_VALUE));
  }
}
