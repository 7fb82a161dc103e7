/** Messages of a PostgreSQL server to one client, without TLS; those of NOTIFY can be lost on the way. */

/** A type and a length, which includes itself (protocol version 3). */
const HEAD_BYTES = 5;
const NOTIFICATION = 'A'.charCodeAt(0);

/** For TcpProxy: passes whole messages on, except notifications while `isDeaf()`. */
export function notificationFilter(isDeaf: () => boolean): (bytes: Buffer) => Buffer {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    const passed: Buffer[] = [];
    while (rest.length >= HEAD_BYTES) {
      const length = 1 + rest.readUInt32BE(1);
      if (rest.length < length) break;
      if (rest[0] !== NOTIFICATION || !isDeaf()) passed.push(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    return Buffer.concat(passed);
  };
}
