/** The series of the objects' bucket, for Prometheus. */
import type { Meters } from '../../platform/prometheus.ts';
import type { S3BlobStore } from './blobs-s3.ts';

export function meterS3(meters: Meters, blobs: S3BlobStore): void {
  const { counters } = blobs;
  const counter = (name: string, help: string, read: () => number) =>
    meters.gauge(`cloudlet_s3_${name}`, { help, type: 'counter', read });
  counter('requests_total', 'Requests to S3, including retries', () => counters.read('requests'));
  counter('retries_total', 'Retried requests to S3', () => counters.read('retries'));
  counter('errors_total', 'Failed requests to S3', () => counters.read('errors'));
  counter(
    'request_seconds_total',
    'Duration of all requests to S3',
    () => counters.read('microseconds') / 1e6,
  );
  counter('sent_bytes_total', 'Bytes sent to S3', () => counters.read('sentBytes'));
  counter('received_bytes_total', 'Bytes of objects received from S3', () => counters.read('receivedBytes'));
  const help = 'Memory used by upload parts in progress';
  meters.gauge('cloudlet_s3_part_bytes', { help, type: 'gauge', read: () => blobs.partBytes });
}
