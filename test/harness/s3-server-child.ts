/** s3rver, an S3 in Node, over a folder. Prints its port. Arguments: folder, bucket, port or 0. */
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

interface S3rver {
  run(): Promise<AddressInfo>;
}
type S3rverClass = new (options: Readonly<Record<string, unknown>>) => S3rver;
const S3rver = createRequire(import.meta.url)('@20minutes/s3rver') as S3rverClass;

const [directory, bucket, wanted] = process.argv.slice(2);
const where = { address: '127.0.0.1', port: Number(wanted), silent: true, directory };
const { port } = await new S3rver({ ...where, configureBuckets: [{ name: bucket }] }).run();
console.log(port);
