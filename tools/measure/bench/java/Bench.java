import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.common.message.Message;

/**
 * Bench NAME_SERVER: works that tools/measure/bench/program.py asks for, one line each on standard input:
 * "send mode=sync flight=1 size=100 topic=T seconds=3". One JSON line answers each. Ends with its input.
 */
public class Bench {
    private static final AtomicInteger SERIAL = new AtomicInteger();

    public static void main(String[] arguments) {
        try {
            serve(arguments[0]);
            System.exit(0); // the clients' threads are no daemons
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void serve(String nameServer) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Sends sends = new Sends(nameServer);
        Reads reads = new Reads(nameServer);
        Pushes pushes = new Pushes(nameServer);
        for (String line; (line = input.readLine()) != null; ) {
            Map<String, String> work = parse(line);
            switch (work.get("work")) {
                case "send": print(sends.run(work)); break;
                case "pull": print(reads.run(work)); break;
                case "push": print(pushes.run(work)); break;
                case "poll": print(pushes.poll(work)); break;
                case "latency": print(pushes.latency(work)); break;
                default: throw new IllegalArgumentException(line);
            }
        }
    }

    private static Map<String, String> parse(String line) {
        Map<String, String> work = new HashMap<>();
        String[] words = line.trim().split(" ");
        work.put("work", words[0]);
        for (String word : Arrays.asList(words).subList(1, words.length)) {
            work.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        }
        return work;
    }

    private static void print(Map<String, Number> result) {
        StringBuilder text = new StringBuilder("{");
        result.forEach((name, value) -> {
            text.append(text.length() > 1 ? "," : "").append('"').append(name).append("\":").append(value);
        });
        System.out.println(text.append("}"));
    }

    static Map<String, Number> result(long count, double seconds) {
        Map<String, Number> result = new LinkedHashMap<>();
        result.put("count", count);
        result.put("seconds", seconds);
        return result;
    }

    /** A message as all programs send it: a tag, a key, one property. */
    static Message message(String topic, byte[] body) {
        Message message = new Message(topic, "TagA", "k" + SERIAL.getAndIncrement(), body);
        message.putUserProperty("src", "bench");
        return message;
    }

    static byte[] body(Map<String, String> work) {
        byte[] body = new byte[Integer.parseInt(work.get("size"))];
        Arrays.fill(body, (byte) 'x');
        return body;
    }
}
