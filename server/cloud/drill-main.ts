/** Runs one restore drill as a program (drivers/drill-process/drill-ground.ts). */
import { createInterface } from 'node:readline';
import type { DrillMessage, DrillOrder } from '../drivers/drill-process/drill-ground.ts';
import { DrillSkipped } from '../recovery/drill/drill.ts';
import { rehearseOrder } from './drill-cloud.ts';

function tell(message: DrillMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const input = createInterface({ input: process.stdin });
// End of input means that the cloud is gone.
input.once('close', () => process.exit(1));
input.once('line', (line) => {
  rehearseOrder(JSON.parse(line) as DrillOrder, (stage) => tell({ stage }))
    .then((findings) => tell({ findings }))
    .catch((error: Error) => {
      tell(error instanceof DrillSkipped ? { skipped: error.message } : { failed: error.message });
    });
});
