/** A guest of 512 bytes for tests: it reports that it is up, echoes its console and can be told to end. */
import { randomSecret } from '../platform/ids.ts';

/**
 * Real mode. Enables the power button (PM1 enable, port 0x602), prints its text to the serial port, and then
 * after every timer tick: if the button was pressed (PM1 status, port 0x600) and it is not deaf, or `q` was
 * received, powers off (PM1 control, port 0x604); any other input is echoed.
 */
const CODE = Buffer.from(
  'fa31c08ed88ed0bc007cba0206b80001effbbe5e7cac84c07405e83100ebf6f4ba0006edf6c4017515bafd03eca80174eeba' +
    'f803ec3c71740ce81200ebe1803e5d7c007507ba0406b80020efebd150bafd03eca82074fb58baf803eec300' +
    Buffer.from('guest is up\r\n\0').toString('hex'),
  'hex',
);
const DEAF_AT = 0x5d;

/** A disk that boots it. `deaf`: it ignores the power button. */
export function testGuestDisk(deaf = false): Buffer {
  const disk = Buffer.alloc(1024 * 1024);
  CODE.copy(disk);
  disk[DEAF_AT] = deaf ? 1 : 0;
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}

/** Version 4, as created by compute. */
export function testUuid(): string {
  const hex = randomSecret(16).toString('hex');
  const [a, b, c, d, e] = [
    [0, 8],
    [8, 12],
    [13, 16],
    [17, 20],
    [20, 32],
  ].map(([from, to]) => hex.slice(from, to));
  return `${a}-${b}-4${c}-8${d}-${e}`;
}
