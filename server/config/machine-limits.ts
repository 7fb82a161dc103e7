/** Settings of machines, in the units of the code. */
import type { Config } from './config.ts';
import { ungrantedMemoryOf } from './registrations.ts';
import { rangeOf } from './setting-kinds.ts';

const GIB = 2 ** 30;

export function machineLimits(config: Config) {
  return {
    outbound: config.vmOutbound === 'on',
    maxImageBytes: config.imageMaxGb * GIB,
    ungrantedMemoryPercent: ungrantedMemoryOf(config),
    graceMs: config.vmGraceSeconds * 1000,
    orphanGraceMs: config.sweepGraceSeconds * 1000,
  };
}

/** The public ports of machines, and the names and connections that they may have. */
export function publishingRules(config: Config) {
  return {
    range: rangeOf(config.publishedPorts),
    reserved: new Set([config.port, config.dataPort]),
    domain: config.appsDomain,
    max: config.maxPublishedPorts,
    // Share of machines; the rest is for the cloud itself: connections by host name use the data origin's.
    maxConnections: Math.ceil(config.maxConnections / 2),
  };
}
