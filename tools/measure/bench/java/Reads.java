import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Reading a whole topic with DefaultMQPullConsumer, its queues shared among threads. */
class Reads {
    private final String nameServer;
    private DefaultMQPullConsumer consumer;

    Reads(String nameServer) {
        this.nameServer = nameServer;
    }

    Map<String, Number> run(Map<String, String> work) throws Exception {
        if (consumer == null) {
            consumer = new DefaultMQPullConsumer("bench_java_pull");
            consumer.setNamesrvAddr(nameServer);
            consumer.start();
        }
        List<MessageQueue> queues = new ArrayList<>(consumer.fetchSubscribeMessageQueues(work.get("topic")));
        Collections.sort(queues);
        Map<MessageQueue, Long> ends = new HashMap<>();
        for (MessageQueue queue : queues) {
            ends.put(queue, consumer.maxOffset(queue));
        }
        AtomicLong count = new AtomicLong();
        AtomicLong bytes = new AtomicLong();
        int threads = Integer.parseInt(work.get("threads"));
        long began = System.nanoTime();
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Map<MessageQueue, Long> positions = new LinkedHashMap<>();
            for (int k = i; k < queues.size(); k += threads) {
                positions.put(queues.get(k), 0L);
            }
            Thread thread = new Thread(() -> pull(positions, ends, count, bytes));
            thread.start();
            running.add(thread);
        }
        for (Thread thread : running) {
            thread.join();
        }
        Map<String, Number> result =
            Bench.result(count.get(), (System.nanoTime() - began) / 1e9);
        result.put("bytes", bytes.get());
        return result;
    }

    private void pull(
        Map<MessageQueue, Long> positions, Map<MessageQueue, Long> ends, AtomicLong count, AtomicLong bytes) {
        try {
            while (!positions.isEmpty()) {
                for (MessageQueue queue : new ArrayList<>(positions.keySet())) {
                    PullResult result = consumer.pull(queue, "*", positions.get(queue), 32);
                    if (result.getPullStatus() == PullStatus.FOUND) {
                        long size = 0;
                        for (MessageExt message : result.getMsgFoundList()) {
                            size += message.getBody().length;
                        }
                        count.addAndGet(result.getMsgFoundList().size());
                        bytes.addAndGet(size);
                    }
                    positions.put(queue, result.getNextBeginOffset());
                    if (result.getNextBeginOffset() >= ends.get(queue)) {
                        positions.remove(queue);
                    }
                }
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
