import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Both sides of request-reply. */
final class Replies {
    private static final int WAIT_SECONDS = 60;

    private Replies() {
    }

    /** Send one request and print its reply. */
    static void ask(String nameServer, String topic, String body) throws Exception {
        DefaultMQProducer producer = startProducer(nameServer, "java-peer-ask");
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        Message reply = producer.request(new Message(topic, bytes), WAIT_SECONDS * 1000L);
        Peer.print(Map.of("reply", new String(reply.getBody(), StandardCharsets.UTF_8)));
        producer.shutdown();
    }

    /** Consume a topic and reply to so many requests. */
    static void answer(String nameServer, String topic, int count) throws Exception {
        DefaultMQProducer producer = startProducer(nameServer, "java-peer-answer");
        CountDownLatch left = new CountDownLatch(count);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-peer-answer-" + topic);
        consumer.setMqClientApiTimeout(30_000);
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(
            (MessageListenerConcurrently) (messages, context) -> {
                for (MessageExt message : messages) {
                    reply(producer, message);
                    left.countDown();
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        consumer.start();
        if (!left.await(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException(left.getCount() + " requests did not come");
        }
        consumer.shutdown();
        producer.shutdown();
    }

    private static void reply(DefaultMQProducer producer, MessageExt request) {
        try {
            String body = "re: " + new String(request.getBody(), StandardCharsets.UTF_8);
            Message reply = MessageUtil.createReplyMessage(request, body.getBytes(StandardCharsets.UTF_8));
            Peer.print(Map.of("status", producer.send(reply, 10_000).getSendStatus().name()));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static DefaultMQProducer startProducer(String nameServer, String group) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setNamesrvAddr(nameServer);
        producer.setMqClientApiTimeout(30_000);
        producer.start();
        return producer;
    }
}
