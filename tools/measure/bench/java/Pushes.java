import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A push consumer: how fast it goes through a backlog, and how long a message takes to reach its listener. */
class Pushes {
    private final String nameServer;

    Pushes(String nameServer) {
        this.nameServer = nameServer;
    }

    /** From the first message that a listener gets to the last; a group of its own each time. */
    Map<String, Number> run(Map<String, String> work) throws Exception {
        AtomicLong count = new AtomicLong();
        AtomicLong first = new AtomicLong();
        AtomicLong last = new AtomicLong();
        long total = Long.parseLong(work.get("total"));
        DefaultMQPushConsumer consumer = consumer(work, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        java.util.function.IntConsumer note = size -> {
            long now = System.nanoTime();
            first.compareAndSet(0, now);
            last.set(now);
            count.addAndGet(size);
        };
        if ("orderly".equals(work.get("kind"))) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                note.accept(messages.size());
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                note.accept(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        long limit = System.nanoTime() + 60_000_000_000L;
        while (count.get() < total && System.nanoTime() < limit) {
            Thread.sleep(10);
        }
        consumer.shutdown();
        return Bench.result(count.get(), (last.get() - first.get()) / 1e9);
    }

    /** From the first message that a poll hands out to the last; an iteration looks at each message. */
    Map<String, Number> poll(Map<String, String> work) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(work.get("group"));
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(work.get("group"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(Integer.parseInt(work.get("batch")));
        consumer.subscribe(work.get("topic"), "*");
        consumer.start();
        long total = Long.parseLong(work.get("total"));
        long count = 0;
        long first = 0;
        long last = 0;
        long limit = System.nanoTime() + 60_000_000_000L;
        while (count < total && last < limit) {
            List<MessageExt> messages = consumer.poll();
            last = System.nanoTime();
            if (first == 0 && !messages.isEmpty()) {
                first = last;
            }
            if ("iteration".equals(work.get("by"))) {
                for (MessageExt message : messages) {
                    count += message.getQueueOffset() >= 0 ? 1 : 0;
                    last = System.nanoTime();
                }
            } else {
                count += messages.size();
            }
        }
        consumer.shutdown();
        return Bench.result(count, (last - first) / 1e9);
    }

    /** Milliseconds from the call of send to the listener, at a steady rate. */
    Map<String, Number> latency(Map<String, String> work) throws Exception {
        int total = Integer.parseInt(work.get("total"));
        double interval = 1e9 / Double.parseDouble(work.get("rate"));
        List<Long> taken = Collections.synchronizedList(new ArrayList<>());
        AtomicLong warm = new AtomicLong();
        String tag = work.get("group");
        String warmTag = tag + "-warm";
        DefaultMQPushConsumer consumer = consumer(work, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long now = System.nanoTime();
            for (MessageExt message : messages) {
                if (tag.equals(message.getTags())) {
                    taken.add(now - ByteBuffer.wrap(message.getBody()).getLong());
                } else if (warmTag.equals(message.getTags())) { // else of an earlier round
                    warm.incrementAndGet();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = new DefaultMQProducer("bench_java_latency");
        producer.setNamesrvAddr(nameServer);
        producer.start();
        // until the queues are shared out and all of them flow
        for (int sent = 0; sent < 200 || sent - warm.get() > 2; sent++) {
            try {
                producer.send(new Message(work.get("topic"), warmTag, new byte[8]));
            } catch (Exception error) { // a first connection on a busy machine
                sent--;
                Thread.sleep(100);
            }
            Thread.sleep(5);
        }
        long began = System.nanoTime();
        for (int i = 0; i < total; i++) {
            long wait = (long) (began + i * interval) - System.nanoTime();
            if (wait > 0) {
                Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
            }
            byte[] body = ByteBuffer.allocate(100).putLong(System.nanoTime()).array();
            producer.send(new Message(work.get("topic"), tag, body));
        }
        long limit = System.nanoTime() + 20_000_000_000L;
        while (taken.size() < total && System.nanoTime() < limit) {
            Thread.sleep(10);
        }
        Map<String, Number> result =
            Bench.result(taken.size(), (System.nanoTime() - began) / 1e9);
        consumer.shutdown();
        producer.shutdown();
        Collections.sort(taken);
        result.put("p50_ms", taken.get(taken.size() / 2) / 1e6);
        result.put("p99_ms", taken.get(taken.size() * 99 / 100) / 1e6);
        return result;
    }

    private DefaultMQPushConsumer consumer(Map<String, String> work, ConsumeFromWhere from) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(work.get("group"));
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(work.get("group"));
        consumer.setConsumeFromWhere(from);
        consumer.setConsumeThreadMin(Integer.parseInt(work.get("threads")));
        consumer.setConsumeThreadMax(Integer.parseInt(work.get("threads")));
        consumer.setConsumeMessageBatchMaxSize(Integer.parseInt(work.get("batch")));
        consumer.setClientRebalance(!"pop".equals(work.get("kind"))); // popping: brokers share the queues out
        consumer.subscribe(work.get("topic"), "*");
        return consumer;
    }
}
