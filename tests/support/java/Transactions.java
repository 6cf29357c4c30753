import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONObject;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A member of a producer group: sends in transactions, then answers so many check-backs. */
final class Transactions implements TransactionListener {
    private static final int CHECK_SECONDS = 60;
    private final LocalTransactionState checkState;
    private final Semaphore checks = new Semaphore(0);

    private Transactions(LocalTransactionState checkState) {
        this.checkState = checkState;
    }

    static void run(String nameServer, String group, String topic, String checkState, int checks, List<String> lines)
        throws Exception {
        Transactions listener = new Transactions(LocalTransactionState.valueOf(checkState));
        TransactionMQProducer producer = new TransactionMQProducer(group);
        producer.setNamesrvAddr(nameServer);
        producer.setMqClientApiTimeout(30_000);
        producer.setSendMsgTimeout(30_000);
        producer.setTransactionListener(listener);
        producer.start();
        for (String line : lines) {
            JSONObject row = JSON.parseObject(line);
            Message message = new Message(topic, HexFormat.of().parseHex(row.getString("body")));
            LocalTransactionState state = LocalTransactionState.valueOf(row.getString("state"));
            TransactionSendResult result = producer.sendMessageInTransaction(message, state);
            Peer.print(Map.of("sent", result.getMsgId(), "state", result.getLocalTransactionState().name()));
        }
        if (lines.isEmpty()) { // without a route it knows no broker, and no broker knows it
            producer.getDefaultMQProducerImpl().getMqClientFactory().updateTopicRouteInfoFromNameServer(topic);
            producer.getDefaultMQProducerImpl().getMqClientFactory().sendHeartbeatToAllBrokerWithLock();
        }
        if (!listener.checks.tryAcquire(checks, CHECK_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not asked " + checks + " times within " + CHECK_SECONDS + " s");
        }
        Thread.sleep(500); // the answers are written by threads of the client's own
        producer.shutdown();
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object state) {
        return (LocalTransactionState) state;
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        Peer.print(Map.of("checked", message.getTransactionId(), "topic", message.getTopic()));
        checks.release();
        return checkState;
    }
}
