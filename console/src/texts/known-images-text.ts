/** The texts of images that are downloaded by name, loaded with their page. */
import { knownImages } from './en/known-images.ts';

export const knownImagesText = knownImages;
