package knobscope;

import site.ycsb.DBException;

/** A binding that can count what a load really stored. */
public interface CountsRecords {
  /** Number of records in {@code table}, as a connection sees it that had no part in loading. */
  long countRecords(String table) throws DBException;
}
