package rmqtools;

import org.apache.rocketmq.store.ha.DefaultHAService;

/**
 * Replication for brokers without slaves: opens no port. The broker's own service listens on every address and
 * sends all stored messages to whoever connects, without any check.
 *
 * Brokers 5.x load the class that META-INF/service/org.apache.rocketmq.store.ha.HAService names. Build it with
 * javac --release 8 -g:none -cp "JARS" NoHaService.java
 */
public class NoHaService extends DefaultHAService {
    @Override
    public void start() {
    }

    @Override
    public void shutdown() {
    }
}
