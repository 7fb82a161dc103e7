/** Point SELECTs with libSQL's own client, over each transport. Prints their number per second. */
import * as hrana from '@libsql/hrana-client';
import { childInput } from '../child.ts';

interface Input {
  /** Address of the database over HTTP, with its final slash. */
  readonly url: string;
  readonly token: string;
  readonly way: 'json' | 'protobuf' | 'socket' | 'socket-protobuf';
  readonly connections: number;
  readonly seconds: number;
}

const { url, token, way, connections, seconds } = childInput<Input>();
const version = way.endsWith('protobuf') ? 3 : 2;
const client = way.startsWith('socket')
  ? hrana.openWs(url.replace(/^http/, 'ws'), token, version)
  : hrana.openHttp(url, token, undefined, undefined, version);
await client.getVersion();
const until = performance.now() + seconds * 1000;
let done = 0;

async function select(): Promise<void> {
  while (performance.now() < until) {
    const stream = client.openStream();
    const row = stream.queryRow('SELECT x FROM t WHERE id = 1');
    stream.closeGracefully();
    if ((await row).row?.x !== 'hello') throw new Error('another row was read');
    done++;
  }
}

await Promise.all(Array.from({ length: connections }, select));
client.close();
console.log(JSON.stringify({ perSecond: done / seconds }));
