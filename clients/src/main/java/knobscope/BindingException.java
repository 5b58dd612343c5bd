package knobscope;

/** An operation failed in the binding. YCSB's operations declare no exception, so this one is unchecked. */
public final class BindingException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public BindingException(Throwable cause) {
    super(cause.getMessage(), cause);
  }
}
