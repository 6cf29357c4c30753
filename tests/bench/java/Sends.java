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

    Sends(String nameServer) {
        this.nameServer = nameServer;
    }

    Map<String, Number> run(Map<String, String> work) throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("bench_java");
            producer.setNamesrvAddr(nameServer);
            producer.setSendMsgTimeout(20000);
            producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE); // see large.py
            producer.start();
            producer.fetchPublishMessageQueues(work.get("topic"));
        }
        long seconds = (long) (Double.parseDouble(work.get("seconds")) * 1e9);
        int flight = Integer.parseInt(work.get("flight"));
        Counts counts = new Counts();
        long began = System.nanoTime();
        switch (work.get("mode")) {
            case "sync": threads(work, flight, began + seconds, counts); break;
            case "async": async(work, flight, began + seconds, counts); break;
            case "batch": batch(work, flight, began + seconds, counts); break;
            default: throw new IllegalArgumentException(work.get("mode"));
        }
        double elapsed = (System.nanoTime() - began) / 1e9;
        Map<String, Number> result = Bench.result(counts.stored.get(), elapsed);
        result.put("failed", counts.failed.get());
        return result;
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

    private void async(Map<String, String> work, int flight, long end, Counts counts) throws Exception {
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
