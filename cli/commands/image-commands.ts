/** Images that administrators download by name, and delete. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AdminImage, Cloud } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { ClientError, EXIT } from '../failures.ts';
import { sizeText } from '../output.ts';
import { about, assertMeant, find, YES } from '../resources.ts';

const POLL_MS = 500;

export const IMAGE_COMMANDS: readonly Command[] = [
  {
    name: 'image ls',
    words: '',
    summary: 'list the images that can be downloaded by name, and those downloaded or added',
    run: async ({ session, output }) => {
      const { cloud } = session();
      const known = await cloud.adminListKnownImages();
      const images = await cloud.adminListImages();
      const notFetched = known
        .filter(({ image }) => image === null)
        .map(({ short_name, title, about_bytes }) => {
          return { short_name, name: title, state: 'not fetched', size: about_bytes, image_id: null };
        });
      const rows = [...notFetched, ...images];
      output.table(rows, ['NAME', 'TITLE', 'STATE', 'SIZE', 'ID'], (row) => {
        const { short_name, name, state, size, image_id } = row;
        const about = image_id === null ? 'about ' : '';
        return [
          short_name ?? '–',
          name,
          state,
          size === null ? null : `${about}${sizeText(size)}`,
          image_id ?? '–',
        ];
      });
    },
  },
  {
    name: 'image fetch',
    words: 'NAME',
    summary: 'download an image from its publisher, verify it, and offer it for new machines under its name',
    details:
      'The cloud downloads the image, even if this command is interrupted or the cloud restarts.\n' +
      '"cloudlet image rm NAME" cancels. "cloudlet image ls" lists the names.',
    run: async ({ words: [name = ''], session, output }) => {
      const { cloud } = session();
      const { image_id } = await cloud.adminFetchImage(name);
      const image = await ended(cloud, image_id, output);
      if (image.state === 'failed') {
        throw new ClientError(
          `${name} could not be downloaded: ${image.state_reason?.message}`,
          EXIT.failure,
        );
      }
      output.one(image, () => [`${name} is ready: cloudlet vm create NAME --image ${name}`]);
    },
  },
  {
    name: 'image rm',
    words: 'IMAGE',
    summary: 'delete an image that no machine uses, or cancel its download',
    options: YES,
    run: about(findImage, async ({ image_id, name }, { cloud, ...call }) => {
      await assertMeant(call, `Delete the image ${name} (${image_id})?`);
      const deleted = await cloud.adminDeleteImage(image_id);
      call.output.one(deleted, () => [`${name} is deleted`]);
    }),
  },
];

/** The newest image of that short name, or the one with that id or title. */
async function findImage(cloud: Cloud, word: string): Promise<AdminImage> {
  const images = await cloud.adminListImages();
  const named = images.findLast(({ short_name }) => short_name === word);
  const namesOf = ({ image_id, name }: AdminImage) => [image_id, name] as const;
  return named ?? find(images, { noun: 'image', listedBy: 'image ls', namesOf }, word);
}

async function ended(cloud: Cloud, imageId: string, output: Invocation['output']): Promise<AdminImage> {
  for (let told = -1; ; ) {
    const image = (await cloud.adminListImages()).find(({ image_id }) => image_id === imageId);
    if (image === undefined) throw new ClientError('the image was deleted meanwhile', EXIT.failure);
    if (image.state !== 'importing') return image;
    const { progress } = image;
    if (progress !== null && progress.percent !== told) {
      const { bytes, total_bytes, percent } = progress;
      told = percent;
      output.note(`${percent} %: ${sizeText(bytes)} of ${sizeText(total_bytes)}`);
    }
    await sleep(POLL_MS);
  }
}
