import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/**
 * A member of a consumer group, on the official push consumer. JSON lines on standard output.
 *
 * <pre>
 * Consumer NAME_SERVER GROUP TOPIC [OPTION]...
 *   --strategy AVG|CIRCLE|CONSISTENT_HASH  how the group shares (AVG)
 *   --orderly        one message after the other per queue, with locks
 *   --broadcasting   every member gets every message
 *   --print          say of every message that was consumed
 *   --fail N         the first N deliveries fail: they come again by the retry topic, or at once if orderly
 *   --seed N         deliveries fail or raise as N, the body and reconsumeTimes decide: see outcome()
 *   --trace TOPIC    send trace records there
 *   --max-reconsume N   then a message goes to the dead-letter topic
 *   --tags EXPR      subscription expression (*)
 *   --instance NAME  second half of the client id
 *   --ip ADDRESS     first half of the client id
 *
 *   {clientId}                                     started
 *   {assigned: [[topic, brokerName, queueId]...]}  what it owns as its running info says, at every change;
 *                                                  the retry topic left out
 *   {queueOffset, brokerName, queueId, topic, msgId, body, keys, tags, reconsumeTimes, failed}
 *   {stopped: true}                                after SIGTERM, or when standard input ends
 * </pre>
 */
public final class Consumer {
    private static final long LOOK_MILLIS = 50;
    private static final int STARTS = 3;
    private final DefaultMQPushConsumer consumer;
    private final List<String> options;
    private final AtomicInteger failures;

    private Consumer(List<String> arguments) throws Exception {
        options = arguments.subList(3, arguments.size());
        failures = new AtomicInteger(Integer.parseInt(option("--fail", "0")));
        consumer = new DefaultMQPushConsumer(arguments.get(1));
        consumer.setNamesrvAddr(arguments.get(0));
        consumer.setMqClientApiTimeout(30_000);
        consumer.setInstanceName(option("--instance", "java-" + ProcessHandle.current().pid()));
        consumer.setClientIP(option("--ip", consumer.getClientIP()));
        consumer.setAllocateMessageQueueStrategy(strategy(option("--strategy", "AVG")));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPollNameServerInterval(1_000); // members of a test come and go
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setMaxReconsumeTimes(Integer.parseInt(option("--max-reconsume", "-1")));
        if (options.contains("--trace")) {
            consumer.setEnableTrace(true);
            consumer.setTraceTopic(option("--trace", ""));
        }
        if (options.contains("--broadcasting")) {
            consumer.setMessageModel(MessageModel.BROADCASTING);
        }
        consumer.subscribe(arguments.get(2), option("--tags", "*"));
        if (options.contains("--orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                consume(messages) ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                context.setDelayLevelWhenNextConsume(1);
                return consume(messages) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
        }
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // the client's logging writes there too
        try {
            Consumer member = started(Arrays.asList(args));
            Runtime.getRuntime().addShutdownHook(new Thread(member::stop));
            Peer.print(Map.of("clientId", member.consumer.buildMQClientId()));
            Thread watcher = new Thread(member::watch);
            watcher.setDaemon(true);
            watcher.start();
            while (System.in.read() >= 0) {
                continue; // until whoever started us ends
            }
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    /** The client asks for its first route once and gives up; on a busy machine that may be too early. */
    private static Consumer started(List<String> arguments) throws Exception {
        for (int left = STARTS - 1; ; left--) {
            Consumer member = new Consumer(arguments);
            try {
                member.consumer.start();
                return member;
            } catch (IllegalStateException error) {
                member.consumer.shutdown();
                if (left == 0) {
                    throw error;
                }
            }
        }
    }

    private void stop() {
        consumer.shutdown();
        Peer.print(Map.of("stopped", true));
    }

    private void watch() {
        List<Object> before = null;
        while (true) {
            List<Object> assigned = assigned();
            if (!assigned.equals(before)) {
                Peer.print(Map.of("assigned", assigned));
                before = assigned;
            }
            try {
                Thread.sleep(LOOK_MILLIS);
            } catch (InterruptedException error) {
                return;
            }
        }
    }

    private List<Object> assigned() {
        ConsumerRunningInfo info = consumer.getDefaultMQPushConsumerImpl().consumerRunningInfo();
        List<MessageQueue> queues = new ArrayList<>(info.getMqTable().keySet());
        queues.addAll(info.getMqPopTable().keySet());
        queues.removeIf(queue -> queue.getTopic().startsWith("%RETRY%"));
        Collections.sort(queues);
        List<Object> rows = new ArrayList<>();
        queues.forEach(queue -> rows.add(List.of(queue.getTopic(), queue.getBrokerName(), queue.getQueueId())));
        return rows;
    }

    private boolean consume(List<MessageExt> messages) {
        String outcome = options.contains("--seed") ? outcome(messages.get(0)) : "success";
        boolean failed = failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0 || !outcome.equals("success");
        if (options.contains("--print")) {
            messages.forEach(message -> Peer.print(describe(message, failed)));
        }
        if (outcome.equals("raise")) {
            throw new IllegalStateException("told to fail");
        }
        return !failed;
    }

    /** The same in member.py: of eight deliveries one raises, and one more fails. */
    private String outcome(MessageExt message) {
        CRC32 crc = new CRC32();
        String body = HexFormat.of().formatHex(message.getBody());
        crc.update((option("--seed", "") + ":" + body + ":" + message.getReconsumeTimes()).getBytes());
        long drawn = crc.getValue() % 8;
        return drawn == 0 ? "raise" : drawn == 1 ? "fail" : "success";
    }

    private static Map<String, Object> describe(MessageExt message, boolean failed) {
        Map<String, Object> line = new HashMap<>();
        line.put("topic", message.getTopic());
        line.put("brokerName", message.getBrokerName());
        line.put("queueId", message.getQueueId());
        line.put("queueOffset", message.getQueueOffset());
        line.put("msgId", message.getMsgId());
        line.put("body", HexFormat.of().formatHex(message.getBody()));
        line.put("keys", message.getKeys());
        line.put("tags", message.getTags());
        line.put("reconsumeTimes", message.getReconsumeTimes());
        line.put("failed", failed);
        return line;
    }

    private String option(String name, String otherwise) {
        int index = options.indexOf(name);
        return index < 0 ? otherwise : options.get(index + 1);
    }

    private static AllocateMessageQueueStrategy strategy(String name) {
        return switch (name) {
            case "AVG" -> new AllocateMessageQueueAveragely();
            case "CIRCLE" -> new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH" -> new AllocateMessageQueueConsistentHash();
            default -> throw new IllegalArgumentException("unknown strategy " + name);
        };
    }
}
