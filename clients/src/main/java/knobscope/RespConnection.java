package knobscope;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** One connection that speaks RESP, the protocol of Redis and its forks, over a Unix socket or 127.0.0.1. */
final class RespConnection implements AutoCloseable {
  private final SocketChannel channel;
  private final InputStream in;
  private final ByteArrayOutputStream out = new ByteArrayOutputStream(4096);

  RespConnection(String socket, int port) throws IOException {
    SocketAddress address = socket == null ? new InetSocketAddress("127.0.0.1", port) : UnixDomainSocketAddress.of(socket);
    channel = SocketChannel.open(address);
    in = new BufferedInputStream(Channels.newInputStream(channel), 16384);
  }

  /** Sends one command and returns its answer: null, a Long, a String or a list of these. */
  Object call(String... words) throws IOException {
    add(words);
    flush();
    return answer();
  }

  /** Puts a command into the buffer; {@link #flush} sends it, and {@link #answer} must be called once for each. */
  void add(String... words) {
    write("*" + words.length + "\r\n");
    for (String word : words) {
      byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
      write("$" + bytes.length + "\r\n");
      out.writeBytes(bytes);
      write("\r\n");
    }
  }

  private void write(String text) {
    out.writeBytes(text.getBytes(StandardCharsets.US_ASCII));
  }

  void flush() throws IOException {
    ByteBuffer buffer = ByteBuffer.wrap(out.toByteArray());
    out.reset();
    while (buffer.hasRemaining()) {
      channel.write(buffer);
    }
  }

  /** The next answer. An error of the server becomes an exception with its words. */
  Object answer() throws IOException {
    String line = readLine();
    String rest = line.substring(1);
    switch (line.charAt(0)) {
      case '+':
        return rest;
      case '-':
        throw new IOException(rest);
      case ':':
        return Long.valueOf(rest);
      case '$':
        return readBulk(Integer.parseInt(rest));
      case '*':
        return readList(Integer.parseInt(rest));
      default:
        throw new IOException("not an answer of RESP: " + line);
    }
  }

  /** Sends what is in the buffer and returns so many answers; all are read, also where one is an error. */
  List<Object> answers(int count) throws IOException {
    flush();
    List<Object> answers = new ArrayList<>(count);
    IOException refusal = null;
    for (int i = 0; i < count; i++) {
      try {
        answers.add(answer());
      } catch (EOFException e) {
        throw e;
      } catch (IOException e) {
        refusal = refusal == null ? e : refusal;
      }
    }
    if (refusal != null) {
      throw refusal;
    }
    return answers;
  }

  private String readBulk(int length) throws IOException {
    if (length < 0) {
      return null;
    }
    byte[] bytes = in.readNBytes(length + 2);
    if (bytes.length < length + 2) {
      throw new EOFException("the server closed the connection");
    }
    return new String(bytes, 0, length, StandardCharsets.UTF_8);
  }

  private List<Object> readList(int length) throws IOException {
    if (length < 0) {
      return null;
    }
    List<Object> items = new ArrayList<>(length);
    for (int i = 0; i < length; i++) {
      items.add(answer());
    }
    return items;
  }

  private String readLine() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int next = in.read(); next != '\r'; next = in.read()) {
      if (next < 0) {
        throw new EOFException("the server closed the connection");
      }
      line.append((char) next);
    }
    in.read(); // the line feed
    return line.toString();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
