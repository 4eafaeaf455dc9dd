import Handle
import Testing

@Test("a jamo keeps its letter")
func letter() {
    #expect(Jamo(letter: "ㅅ").letter == "ㅅ")
}
