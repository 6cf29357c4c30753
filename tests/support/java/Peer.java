import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * The official Java client as a test's peer. JSON lines in UTF-8 on standard input and output, bodies in hex.
 *
 * <pre>
 * Peer fill NAME_SERVER < {topic, body, tags?, keys, properties, compress?, flag, brokerName?, queueId?}
 *                       > {sendStatus, msgId, offsetMsgId, brokerName, queueId, queueOffset}
 * Peer dump NAME_SERVER TOPIC
 *                       > {topic, brokerName, queueId, queueOffset, body, tags, keys, properties, msgId,
 *                          bornTimestamp, storeTimestamp, bornHost, reconsumeTimes, sysFlag, flag}
 * Peer transact NAME_SERVER GROUP TOPIC CHECK_STATE CHECKS < {body, state}
 *                       > {sent, state} ... {checked, topic}     ends after so many check-backs
 * Peer ask NAME_SERVER TOPIC BODY
 *                       > {reply}
 * Peer answer NAME_SERVER TOPIC COUNT
 *                       > {status}
 * </pre>
 */
public final class Peer {
    private static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    private static final int PULL_SIZE = 32;

    public static void main(String[] args) {
        System.setOut(System.err); // the client's logging writes there too
        try {
            switch (args[0]) {
                case "fill" -> fill(args[1]);
                case "dump" -> dump(args[1], args[2]);
                case "transact" -> Transactions.run(
                    args[1], args[2], args[3], args[4], Integer.parseInt(args[5]), inputLines());
                case "ask" -> Replies.ask(args[1], args[2], args[3]);
                case "answer" -> Replies.answer(args[1], args[2], Integer.parseInt(args[3]));
                default -> throw new IllegalArgumentException("unknown command " + args[0]);
            }
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // the client leaves threads behind
    }

    private static List<String> inputLines() {
        return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).lines().toList();
    }

    private static void fill(String nameServer) throws Exception {
        Map<String, DefaultMQProducer> producers = new HashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject row = JSON.parseObject(line);
            String compress = row.getString("compress");
            DefaultMQProducer producer = producers.get(compress);
            if (producer == null) {
                producer = startProducer(nameServer, compress);
                producers.put(compress, producer);
            }
            print(send(producer, row));
        }
        producers.values().forEach(DefaultMQProducer::shutdown);
    }

    private static DefaultMQProducer startProducer(String nameServer, String compress) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("java-peer-" + compress);
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName("java-peer-" + compress);
        producer.setMqClientApiTimeout(30_000);
        producer.setSendMsgTimeout(30_000);
        producer.setCompressMsgBodyOverHowmuch(compress == null ? Integer.MAX_VALUE : 1);
        if (compress != null) {
            producer.setCompressType(CompressionType.valueOf(compress));
        }
        producer.start();
        return producer;
    }

    private static Map<String, Object> send(DefaultMQProducer producer, JSONObject row) throws Exception {
        byte[] body = HexFormat.of().parseHex(row.getString("body"));
        Message message = new Message(row.getString("topic"), row.getString("tags"), body);
        message.setFlag(row.getIntValue("flag"));
        JSONArray keys = row.getJSONArray("keys");
        if (!keys.isEmpty()) {
            message.setKeys(keys.toList(String.class));
        }
        row.getJSONObject("properties").forEach((name, value) -> message.putUserProperty(name, (String) value));
        String brokerName = row.getString("brokerName");
        SendResult result = brokerName == null
            ? producer.send(message)
            : producer.send(message, new MessageQueue(message.getTopic(), brokerName, row.getIntValue("queueId")));
        Map<String, Object> line = new HashMap<>();
        line.put("sendStatus", result.getSendStatus().name());
        line.put("msgId", result.getMsgId());
        line.put("offsetMsgId", result.getOffsetMsgId());
        line.put("brokerName", result.getMessageQueue().getBrokerName());
        line.put("queueId", result.getMessageQueue().getQueueId());
        line.put("queueOffset", result.getQueueOffset());
        return line;
    }

    /** Asks again where the name server does not answer within the client's three seconds. */
    private static List<MessageQueue> queuesOf(DefaultMQPullConsumer consumer, String topic) throws Exception {
        for (int left = 20; ; left--) {
            try {
                List<MessageQueue> queues = new ArrayList<>(consumer.fetchSubscribeMessageQueues(topic));
                Collections.sort(queues);
                return queues;
            } catch (MQClientException error) {
                if (left == 0) {
                    throw error;
                }
            }
        }
    }

    private static void dump(String nameServer, String topic) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("java-peer-dump");
        consumer.setNamesrvAddr(nameServer);
        consumer.start();
        List<MessageQueue> queues = queuesOf(consumer, topic);
        for (MessageQueue queue : queues) {
            dumpQueue(consumer, queue);
        }
        consumer.shutdown();
    }

    private static void dumpQueue(DefaultMQPullConsumer consumer, MessageQueue queue) throws Exception {
        long end = consumer.maxOffset(queue);
        for (long offset = consumer.minOffset(queue); offset < end; ) {
            PullResult result = consumer.pull(queue, "*", offset, PULL_SIZE);
            if (result.getMsgFoundList() != null) {
                result.getMsgFoundList().forEach(message -> print(describe(queue, message)));
            }
            if (result.getNextBeginOffset() <= offset) {
                throw new IllegalStateException("no way past offset " + offset + " of " + queue + ": " + result);
            }
            offset = result.getNextBeginOffset();
        }
    }

    private static Map<String, Object> describe(MessageQueue queue, MessageExt message) {
        InetSocketAddress bornHost = (InetSocketAddress) message.getBornHost();
        Map<String, Object> line = new HashMap<>();
        line.put("topic", message.getTopic());
        line.put("brokerName", queue.getBrokerName());
        line.put("queueId", message.getQueueId());
        line.put("queueOffset", message.getQueueOffset());
        line.put("body", HexFormat.of().formatHex(message.getBody()));
        line.put("tags", message.getTags());
        line.put("keys", message.getKeys());
        line.put("properties", message.getProperties());
        line.put("msgId", message.getMsgId());
        line.put("bornTimestamp", message.getBornTimestamp());
        line.put("storeTimestamp", message.getStoreTimestamp());
        line.put("bornHost", bornHost.getAddress().getHostAddress() + ":" + bornHost.getPort());
        line.put("reconsumeTimes", message.getReconsumeTimes());
        line.put("sysFlag", message.getSysFlag());
        line.put("flag", message.getFlag());
        return line;
    }

    static synchronized void print(Map<String, Object> line) {
        OUT.println(JSON.toJSONString(line, JSONWriter.Feature.WriteNulls));
    }
}
