/** The holes of a raw disk. */
import { QemuPrograms } from '../program.ts';
import { type Extent, mapOf } from './disk-map.ts';

/** Uses qemu-img; undefined if not installed. */
export async function holesOf(fd: number): Promise<readonly Extent[] | undefined> {
  const qemuImg = await new QemuPrograms().image();
  if (qemuImg === null) return undefined;
  const map = await mapOf(qemuImg, { fd, format: 'raw', uid: null }).catch(() => []);
  return map.filter(({ zero }) => zero);
}
