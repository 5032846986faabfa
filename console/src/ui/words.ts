// How are words of the API written for people?

/** `FIRST_CONTACT` as `first contact`. */
export function wordsOf(word: string): string {
  return word.toLowerCase().replaceAll("_", " ");
}

/** `FIRST_CONTACT` as `First contact`. */
export function titleOf(word: string): string {
  const words = wordsOf(word);
  return words.charAt(0).toUpperCase() + words.slice(1);
}
