package knobscope;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import site.ycsb.DB;
import site.ycsb.DBException;

/**
 * When each operation of a session began and ended, and which thread of the DBMS served it: with the trace of a run it
 * says which operation made which request. Times are System.nanoTime, CLOCK_MONOTONIC on Linux, as in the trace.
 */
final class SessionLog {
  private static final Queue<SessionLog> ALL = new ConcurrentLinkedQueue<>();

  private final String thread;
  private final Queue<Span> spans = new ConcurrentLinkedQueue<>();

  /** One operation with all its attempts. */
  static final class Span {
    private final String operation;
    private final long beginNs;
    private volatile Long endNs;

    private Span(String operation, long beginNs) {
      this.operation = operation;
      this.beginNs = beginNs;
    }

    void end(long atNs) {
      endNs = atNs;
    }
  }

  private SessionLog(String thread) {
    this.thread = thread;
  }

  /**
   * Asks a connection for its thread; an empty question means this one, in which an embedded DBMS works.
   *
   * @return null where the connection has no thread of its own
   */
  static SessionLog open(String question, DB connection) throws DBException, IOException {
    String thread = question.isEmpty()
        ? Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString()
        : ((ReadsBack) connection).readOne(question);
    if (thread == null) {
      return null;
    }
    SessionLog log = new SessionLog(thread);
    ALL.add(log);
    return log;
  }

  Span begin(String operation, long atNs) {
    Span span = new Span(operation, atNs);
    spans.add(span);
    return span;
  }

  /** A line for each operation of all sessions; one that is under way has no end. */
  static String csv() {
    StringBuilder csv = new StringBuilder("thread,operation,begin_ns,end_ns\n");
    for (SessionLog log : ALL) {
      for (Span span : log.spans) {
        Long end = span.endNs;
        csv.append(log.thread).append(',').append(span.operation).append(',').append(span.beginNs).append(',');
        csv.append(end == null ? "" : end).append('\n');
      }
    }
    return csv.toString();
  }
}
