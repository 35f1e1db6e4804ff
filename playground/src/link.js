// A program within the fragment of an address: compressed, in the letters of base64 for addresses.

const LONGEST = 1_000_000; // characters of a program

const through = async (bytes, stream) => new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();

export const packed = async (text) => {
  const bytes = new Uint8Array(await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw")));
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};

// Returns the program; raises an error if the text is no packed program, or a longer one than the compiler reads.
export const unpacked = async (text) => {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let program = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return program + decoder.decode();
    program += decoder.decode(value, { stream: true });
    if (program.length > LONGEST) {
      await reader.cancel();
      throw new Error("too long");
    }
  }
};
