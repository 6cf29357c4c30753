import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** Sending for so many seconds: sync, async with so many in flight, batches of so many. */
class Sends {
    private final String nameServer;
    private DefaultMQProducer producer;
    private DefaultMQProducer lingering;

    Sends(String nameServer) {
        this.nameServer = nameServer;
    }

    Map<String, Number> run(Map<String, String> work) throws Exception {
        if (producer == null) {
            producer = started("bench_java", work);
        }
        long seconds = (long) (Double.parseDouble(work.get("seconds")) * 1e9);
        int flight = Integer.parseInt(work.get("flight"));
        Counts counts = new Counts();
        long began = System.nanoTime();
        switch (work.get("mode")) {
            case "sync": threads(work, flight, began + seconds, counts); break;
            case "async": async(producer, work, flight, began + seconds, counts); break;
            case "async-linger": async(lingering(work), work, flight, began + seconds, counts); break;
            case "batch": batch(work, flight, began + seconds, counts); break;
            default: throw new IllegalArgumentException(work.get("mode"));
        }
        double elapsed = (System.nanoTime() - began) / 1e9;
        Map<String, Number> result = Bench.result(counts.stored.get(), elapsed);
        result.put("failed", counts.failed.get());
        return result;
    }

    private DefaultMQProducer started(String group, Map<String, String> work) throws Exception {
        DefaultMQProducer made = new DefaultMQProducer(group);
        made.setNamesrvAddr(nameServer);
        made.setSendMsgTimeout(20000);
        made.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE); // see large.py
        made.start();
        made.fetchPublishMessageQueues(work.get("topic"));
        return made;
    }

    private DefaultMQProducer lingering(Map<String, String> work) throws Exception {
        if (lingering == null) {
            lingering = started("bench_java_linger", work);
            lingering.setAutoBatch(true);
            lingering.batchMaxDelayMs((int) (Double.parseDouble(work.get("linger")) * 1000));
            lingering.batchMaxBytes(Long.parseLong(work.get("batch_bytes")));
            lingering.totalBatchMaxBytes(32 * 1024 * 1024);
        }
        return lingering;
    }

    private void threads(Map<String, String> work, int count, long end, Counts counts) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            Thread thread = new Thread(() -> sync(work, end, counts));
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void sync(Map<String, String> work, long end, Counts counts) {
        byte[] body = Bench.body(work);
        while (System.nanoTime() < end) {
            try {
                producer.send(Bench.message(work.get("topic"), body));
                counts.stored.incrementAndGet();
            } catch (Exception error) {
                counts.failed.incrementAndGet();
            }
        }
    }

    private static void async(
            DefaultMQProducer producer, Map<String, String> work, int flight, long end, Counts counts)
            throws Exception {
        byte[] body = Bench.body(work);
        Semaphore free = new Semaphore(flight);
        while (System.nanoTime() < end) {
            free.acquire();
            producer.send(Bench.message(work.get("topic"), body), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    counts.stored.incrementAndGet();
                    free.release();
                }

                @Override
                public void onException(Throwable error) {
                    counts.failed.incrementAndGet();
                    free.release();
                }
            });
        }
        free.acquire(flight);
    }

    private void batch(Map<String, String> work, int size, long end, Counts counts) {
        byte[] body = Bench.body(work);
        while (System.nanoTime() < end) {
            List<Message> messages = new ArrayList<>(size);
            for (int i = 0; i < size; i++) {
                messages.add(Bench.message(work.get("topic"), body));
            }
            try {
                producer.send(messages);
                counts.stored.addAndGet(size);
            } catch (Exception error) {
                counts.failed.addAndGet(size);
            }
        }
    }

    private static class Counts {
        final AtomicLong stored = new AtomicLong();
        final AtomicLong failed = new AtomicLong();
    }
}
